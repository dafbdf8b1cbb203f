"""The simulated customers of Kuusisto et al. (2014): a random Bayesian network and four groups of customers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from upturn._arrays import Floats, Ints
from upturn._parameters import check, whole
from upturn.datasets._data import UpliftData
from upturn.datasets._random import Seed, bernoulli, coin, experiment, generator
from upturn.datasets._sources import pandas

__all__ = ["simulate_customers"]

_GROUPS = ("persuadable", "sure thing", "lost cause", "sleeping dog")
_RESPONSE = np.array([[0.0, 1.0], [1.0, 1.0], [0.0, 0.0], [1.0, 0.0]])  # control, treatment
_MOST_PARENTS = 5  # keeps the probability tables small


@dataclass(frozen=True)
class Network:
    """A Bayesian network over nodes 0 … in topological order: P(x) = Π_v P(x_v | x_parents(v)).

    ``tables[v]`` has one row per configuration of the parents, the last parent running fastest.
    """

    sizes: Ints
    parents: tuple[Ints, ...]
    tables: tuple[Floats, ...]

    def row(self, node: int, values: Ints) -> Ints:
        """Return, for each row of values, the row of the node's table its parents point to."""
        index = np.zeros(len(values), dtype=np.int64)
        for parent in self.parents[node]:
            index = index * self.sizes[parent] + values[:, parent]
        return index

    def sample(self, rng: np.random.Generator, n: int) -> Ints:
        """Return n draws, a column per node."""
        values = np.zeros((n, len(self.sizes)), dtype=np.int64)
        for node in range(len(self.sizes)):
            cumulative = np.cumsum(self.tables[node], axis=1)[self.row(node, values)]
            drawn = (rng.random(n)[:, None] >= cumulative[:, :-1]).sum(axis=1)
            values[:, node] = drawn
        return values

    def posterior(self, node: int, values: Ints) -> Floats:
        """Return P(x_node | all other nodes) for each row: only the node's own table and its children's matter."""
        children = [child for child, above in enumerate(self.parents) if node in above]
        trial = values.copy()
        out = np.empty((len(values), int(self.sizes[node])))
        own = self.tables[node][self.row(node, values)]
        for level in range(int(self.sizes[node])):
            trial[:, node] = level
            weight = own[:, level].copy()
            for child in children:
                weight *= self.tables[child][self.row(child, trial), values[:, child]]
            out[:, level] = weight
        posterior: Floats = out / out.sum(axis=1, keepdims=True)
        return posterior


def _random_network(rng: np.random.Generator, nodes: int, edges: int) -> tuple[Network, int]:
    """Return a random network, and a node of four values that has a neighbour, to be the customers' group."""
    pairs = np.array([(a, b) for b in range(nodes) for a in range(b)])
    while True:  # a draw may have no fitting node, or one with too many parents
        sizes = rng.integers(2, 5, nodes)
        chosen = pairs[rng.choice(len(pairs), edges, replace=False)]
        parents = tuple(np.sort(chosen[chosen[:, 1] == node, 0]) for node in range(nodes))
        fitting = np.flatnonzero((sizes == 4) & np.isin(np.arange(nodes), chosen))
        if len(fitting) and max(len(above) for above in parents) <= _MOST_PARENTS:
            break
    tables = tuple(
        rng.dirichlet(np.ones(sizes[node]), int(np.prod(sizes[parents[node]], dtype=np.int64))) for node in range(nodes)
    )
    return Network(sizes, parents, tables), int(rng.choice(fitting))


def simulate_customers(
    n: int = 10_000, nodes: int = 20, edges: int = 30, network_seed: int = 0, random_state: Seed = None
) -> UpliftData:
    """Simulate the customers of [1]_, section 3.2: persuadables, sure things, lost causes and sleeping dogs.

    A random Bayesian network of 20 nodes and 30 edges is drawn, with two to four values a node and uniform Dirichlet
    probability tables. One node of four values, which has a neighbour, is the customer's group; the other nodes are
    the features. Half of the customers are targeted, at random. Persuadables respond exactly when targeted, sleeping
    dogs exactly when not, sure things always, lost causes never.

    The group is hidden, so the effect given the features is P(persuadable | x) - P(sleeping dog | x); it follows from
    the network exactly, by Bayes' rule on the group's table and those of its children.

    Parameters
    ----------
    n : int
        Number of customers.
    nodes, edges : int
        Size of the network.
    network_seed : int
        Draws the network; the same one goes with every ``random_state``.
    random_state : int, Generator, RandomState or None

    Returns
    -------
    UpliftData
        ``X`` is a DataFrame of categorical columns; ``details["group"]`` names each customer's group and
        ``details["unit_effect"]`` is what targeting does to that customer: 1, 0 or -1.

    References
    ----------
    .. [1] F. Kuusisto, V. Santos Costa, H. Nassif, E. Burnside, D. Page, J. Shavlik, "Support vector machines for
       differential prediction", ECML PKDD 2014.

    Examples
    --------
    >>> from upturn.datasets import simulate_customers
    >>> data = simulate_customers(n=500, random_state=0)
    >>> data.X.shape, sorted(set(data.details["group"].tolist()))
    ((500, 19), ['lost cause', 'persuadable', 'sleeping dog', 'sure thing'])
    """
    pd = pandas("simulate_customers")
    check("n", n, whole(least=1))
    check("nodes", nodes, whole(least=2))
    most = min(nodes * (nodes - 1) // 2, _MOST_PARENTS * (nodes - 1))
    check(
        "edges",
        edges,
        whole(least=1, most=most).named(f"1 to {most}: {nodes} nodes have at most {_MOST_PARENTS} parents each"),
    )
    check("network_seed", network_seed, whole(least=0))
    network, hidden = _random_network(np.random.default_rng([20, network_seed]), nodes, edges)
    rng = generator(random_state)
    values = network.sample(rng, n)
    group = values[:, hidden]
    response = network.posterior(hidden, values) @ _RESPONSE
    arm = coin(rng, n)
    features = [node for node in range(nodes) if node != hidden]
    X = pd.DataFrame(
        {
            f"x{j + 1}": pd.Categorical.from_codes(values[:, node], categories=list("abcd")[: network.sizes[node]])
            for j, node in enumerate(features)
        }
    )
    return experiment(
        X,
        bernoulli(rng, _RESPONSE[group], arm),
        arm,
        response,
        "customers",
        "Simulated customers of Kuusisto et al. (2014).",
        group=np.array(_GROUPS)[group],
        unit_effect=(_RESPONSE[group, 1] - _RESPONSE[group, 0]).astype(np.int64),
    )
