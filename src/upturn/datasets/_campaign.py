"""A marketing campaign with two offers: mixed column types, missing values, costs and revenue."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from upturn._arrays import Floats
from upturn._parameters import check, one_of, whole
from upturn.datasets._data import UpliftData
from upturn.datasets._random import Seed, bernoulli, equal_arms, experiment, generator, logistic
from upturn.datasets._sources import pandas

__all__ = ["simulate_campaign"]

_REGIONS = ("east", "north", "south", "west")
_CHANNELS = ("app", "email", "shop")
_LABELS = np.array(["control", "call", "coupon"])
_COST = {"call": 4.0, "coupon": 1.0}  # of making the offer; a coupon is also paid for when used
_COUPON = 0.85  # a coupon buyer pays 85% of the price


def _people(rng: np.random.Generator, n: int) -> dict[str, NDArray[Any]]:
    """Return the true attributes of n customers, before anything goes missing."""
    age = np.clip(rng.normal(45, 15, n), 18, 90).round()
    income = np.exp(rng.normal(10.2, 0.4, n) + 0.004 * (age - 45)).round(-2)
    return {
        "age": age,
        "income": income,
        "tenure_months": rng.gamma(2.0, 18.0, n).round(),
        "days_since_purchase": rng.gamma(1.5, 60.0, n).round(),
        "purchases_last_year": rng.poisson(np.exp(0.6 + 0.2 * rng.standard_normal(n))),
        "region": rng.choice(len(_REGIONS), n, p=[0.3, 0.2, 0.3, 0.2]),
        "channel": rng.choice(len(_CHANNELS), n, p=[0.35, 0.4, 0.25]),
        "newsletter": rng.random(n) < 0.4,
        "complaints": rng.poisson(0.3, n),
    }


def _probabilities(who: dict[str, NDArray[Any]]) -> Floats:
    """Return the purchase probabilities (n, 3): control, call, coupon."""
    age, recency = (who["age"] - 45) / 15, who["days_since_purchase"] / 90
    app, shop = who["channel"] == 0, who["channel"] == 2
    base = -1.9 + 0.12 * who["purchases_last_year"] - 0.35 * recency + 0.2 * shop + 0.15 * who["newsletter"]
    # a call wins older customers and those who were away for long, and annoys those who complained or use the app
    call = 0.35 + 0.45 * age + 0.25 * np.minimum(recency, 3) - 0.7 * who["complaints"] - 0.5 * app
    # a coupon wins younger, app-using and poorer customers; newsletter readers would have come anyway
    coupon = 0.25 - 0.35 * age + 0.45 * app - 0.3 * np.log(who["income"] / 27_000) - 0.35 * who["newsletter"]
    return logistic(np.column_stack([base, base + call, base + coupon]))


def simulate_campaign(
    n: int = 10_000, outcome: Literal["purchase", "revenue"] = "purchase", random_state: Seed = None
) -> UpliftData:
    """Simulate a campaign with two offers, a call and a coupon, sent to a third of the customers each.

    Whether a customer buys depends on the offer and on who they are: calls win older customers and those who have not
    bought for long, and annoy those who complained; coupons win younger customers who use the app, and are wasted on
    newsletter readers. A buyer spends a log-normal amount that grows with income; a buyer with a coupon pays 15% less.

    Columns: age and income (with missing values, more of them for younger customers, at random otherwise),
    tenure_months, days_since_purchase, purchases_last_year, complaints, newsletter (boolean), region and channel
    (categorical; channel has missing values). What is missing does not depend on the offer.

    Parameters
    ----------
    n : int
        Number of customers.
    outcome : "purchase" or "revenue"
        Whether the customer bought (0/1), or what was paid.
    random_state : int, Generator, RandomState or None

    Returns
    -------
    UpliftData
        With treatment labels "control", "call" and "coupon"; ``effect`` has the columns call and coupon, and is the
        truth given all attributes, also those that are missing in X. ``details`` has ``purchase_response`` and
        ``revenue_response`` (n, 3), the ``revenue`` paid, the ``cost`` of making each offer, and ``value``, the
        mean revenue of a purchase without a coupon.

    Examples
    --------
    >>> from upturn.datasets import simulate_campaign
    >>> data = simulate_campaign(n=300, random_state=0)
    >>> data.effect.shape, data.details["cost"]
    ((300, 2), {'call': 4.0, 'coupon': 1.0})
    """
    check("n", n, whole(least=3))
    check("outcome", outcome, one_of("purchase", "revenue"))
    pd = pandas("simulate_campaign")
    rng = generator(random_state)
    who = _people(rng, n)
    arm = equal_arms(rng, n, 3)
    purchase_response = _probabilities(who)
    bought = bernoulli(rng, purchase_response, arm)
    spread = 0.5
    mean_amount = 40.0 * (who["income"] / 27_000) ** 0.5
    amount = mean_amount * np.exp(spread * rng.standard_normal(n) - spread**2 / 2)
    price = np.array([1.0, 1.0, _COUPON])
    revenue = (bought * amount * price[arm]).round(2)
    revenue_response = purchase_response * mean_amount[:, None] * price
    young = who["age"] < 30
    columns: dict[str, Any] = dict(who)
    columns["age"] = np.where(rng.random(n) < np.where(young, 0.1, 0.03), np.nan, who["age"])
    columns["income"] = np.where(rng.random(n) < np.where(young, 0.3, 0.1), np.nan, who["income"])
    columns["region"] = pd.Categorical.from_codes(who["region"], categories=list(_REGIONS))
    channel = np.where(rng.random(n) < 0.05, -1, who["channel"])
    columns["channel"] = pd.Categorical.from_codes(channel, categories=list(_CHANNELS))
    return experiment(
        pd.DataFrame(columns),
        bought if outcome == "purchase" else revenue,
        _LABELS[arm],
        purchase_response if outcome == "purchase" else revenue_response,
        f"campaign-{outcome}",
        "A campaign with a call and a coupon; a third of the customers got neither.",
        purchase_response=purchase_response,
        revenue_response=revenue_response,
        revenue=revenue,
        cost=dict(_COST),
        value=float(mean_amount.mean()),
    )
