"""Loaders of clinical trials and studies: colon, veteran, bladder, pbc, burn, hodg, bmt, tamoxifen, rhc, rotterdam.

No time, status or other outcome ever enters X: each loader lists the covariates it keeps.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from upturn._arrays import Ints
from upturn._parameters import check, one_of
from upturn.datasets._convert import survival_to_uplift
from upturn.datasets._data import UpliftData
from upturn.datasets._reading import features, table

__all__ = [
    "load_bladder",
    "load_bmt",
    "load_burn",
    "load_colon",
    "load_hodg",
    "load_pbc",
    "load_rhc",
    "load_rotterdam",
    "load_tamoxifen",
    "load_veteran",
]

_COLON = ("sex", "age", "obstruct", "perfor", "adhere", "nodes", "differ", "extent", "surg", "node4")
_VETERAN = ("celltype", "karno", "diagtime", "age", "prior")
_BLADDER = ("number", "size")
_PBC = (
    *("age", "sex", "ascites", "hepato", "spiders", "edema", "bili", "chol", "albumin"),
    *("copper", "alk.phos", "ast", "trig", "platelet", "protime", "stage"),
)
_BURN = tuple(f"Z{i}" for i in range(2, 12))
_HODG = ("dtype", "score", "wtime")
_BMT = ("dx", "extent", "age")
_TAMOXIFEN = ("pathsize", "hist", "hgb", "nodediss", "age", "hrlevel")
_ROTTERDAM = ("year", "age", "meno", "size", "grade", "nodes", "pgr", "er", "chemo")
_RHC = (
    *("age", "sex", "race", "edu", "income", "ninsclas", "cat1", "cat2"),
    *("resp", "card", "neuro", "gastr", "renal", "meta", "hema", "seps", "trauma", "ortho"),
    *("adld3p", "das2d3pc", "dnr1", "ca", "surv2md1", "aps1", "scoma1", "wtkilo1", "temp1", "meanbp1", "resp1"),
    *("hrt1", "pafi1", "paco21", "ph1", "wblc1", "hema1", "sod1", "pot1", "crea1", "bili1", "alb1", "urin1"),
    *("cardiohx", "chfhx", "dementhx", "psychhx", "chrpulhx", "renalhx", "liverhx", "gibledhx", "malighx"),
    *("immunhx", "transhx", "amihx"),
)


def _survival(rows: Any, time: str, event: Any) -> Ints:
    return survival_to_uplift(rows[time].to_numpy(), np.asarray(event, dtype=np.int64))


def _times(rows: Any, time: str, event: Any) -> dict[str, Any]:
    """The times behind an outcome and whether they ended in the event: what :func:`survival_outcome` takes."""
    return {"time": rows[time].to_numpy().astype(np.float64), "event": np.asarray(event, dtype=np.int64)}


def load_colon(
    outcome: Literal["death", "recurrence"] = "death", arms: Literal["lev", "lev5fu", "both", "all"] = "both"
) -> UpliftData:
    """Load the colon cancer trial: levamisole, levamisole with fluorouracil (5FU), and observation.

    929 patients: 315 observed only (control), 310 levamisole, 304 levamisole + 5FU. Success is a time to death, or to
    recurrence, of at least the median of the rows kept.

    Covariates kept (10): sex, age, obstruct, perfor, adhere, nodes, differ, extent, surg, node4. Left out: id, study
    (constant), rx (the treatment), time, status, etype. ``nodes`` and ``differ`` have missing values.

    Parameters
    ----------
    outcome : "death" or "recurrence"
    arms : "lev", "lev5fu", "both" or "all"
        One of the treatments against control; both merged into one arm; or both kept apart, with the treatment labels
        "control", "lev" and "lev5fu".

    Examples
    --------
    >>> from upturn.datasets import load_colon
    >>> data = load_colon("recurrence", arms="lev")        # doctest: +SKIP
    >>> data.X.shape                                       # doctest: +SKIP
    (625, 10)
    """
    check("outcome", outcome, one_of("death", "recurrence"))
    check("arms", arms, one_of("lev", "lev5fu", "both", "all"))
    rows = table("colon", "load_colon", (*_COLON, "rx", "time", "status", "etype"))
    rows = rows[rows["etype"] == (2 if outcome == "death" else 1)]
    label = rows["rx"].map({"Obs": "control", "Lev": "lev", "Lev+5FU": "lev5fu"})
    if arms in ("lev", "lev5fu"):
        keep = label.isin(["control", arms])
        rows, label = rows[keep], label[keep]
    labels = label.to_numpy().astype(str)
    treatment = labels if arms == "all" else (labels != "control").astype(np.int64)
    suffix = {"lev": "-lev", "lev5fu": "-lev5fu", "both": "", "all": "-all"}[arms]
    return UpliftData(
        features(rows, _COLON),
        _survival(rows, "time", rows["status"]),
        treatment,
        name=f"colon{suffix}-{'death' if outcome == 'death' else 'recur'}",
        description=f"Colon cancer trial; success: time to {outcome} of at least the median.",
        details=_times(rows, "time", rows["status"]),
    )


def load_veteran() -> UpliftData:
    """Load the Veterans' Administration lung cancer trial: standard against test chemotherapy.

    137 patients, 69 standard (control) and 68 test therapy (treatment, the detrimental one). Success is a survival
    time of at least the median.

    Covariates kept (5): celltype (categorical), karno, diagtime, age, prior. Left out: trt, time, status.
    """
    rows = table("veteran", "load_veteran", (*_VETERAN, "trt", "time", "status"))
    return UpliftData(
        features(rows, _VETERAN),
        _survival(rows, "time", rows["status"]),
        (rows["trt"] == 2).to_numpy().astype(np.int64),
        name="veteran",
        description="Veterans' lung cancer trial, test therapy against standard; success: survival of at least the "
        "median.",
        details=_times(rows, "time", rows["status"]),
    )


def load_bladder() -> UpliftData:
    """Load the bladder cancer trial: thiotepa against placebo.

    85 patients (the rows ``enum == 1``), 47 placebo (control) and 38 thiotepa. Success is a time to the first
    recurrence, or to the end of follow-up, of at least the median.

    Covariates kept (2): number, size (of the initial tumours). Left out: id, rx, stop, event, enum.
    """
    rows = table("bladder", "load_bladder", (*_BLADDER, "rx", "stop", "event", "enum"))
    rows = rows[rows["enum"] == 1]
    return UpliftData(
        features(rows, _BLADDER),
        _survival(rows, "stop", rows["event"]),
        (rows["rx"] == 2).to_numpy().astype(np.int64),
        name="bladder",
        description="Bladder cancer trial, thiotepa against placebo; success: no recurrence seen before the median "
        "time.",
        details=_times(rows, "stop", rows["event"]),
    )


def load_pbc() -> UpliftData:
    """Load the Mayo Clinic trial in primary biliary cholangitis: D-penicillamine against placebo.

    The 312 randomised patients: 158 D-penicillamine (treatment) and 154 placebo; the 106 others were followed without
    being randomised and are left out. Success is a survival time of at least the median.

    Covariates kept (16): age, sex (categorical), ascites, hepato, spiders, edema, bili, chol, albumin, copper,
    alk.phos, ast, trig, platelet, protime, stage. Left out: id, trt, time, status. Some have missing values.
    """
    rows = table("pbc", "load_pbc", (*_PBC, "trt", "time", "status"))
    rows = rows[rows["trt"].notna()]
    return UpliftData(
        features(rows, _PBC),
        _survival(rows, "time", rows["status"] > 0),
        (rows["trt"] == 1).to_numpy().astype(np.int64),
        name="pbc",
        description="Primary biliary cholangitis trial, D-penicillamine against placebo; success: survival of at "
        "least the median.",
        details=_times(rows, "time", rows["status"] > 0),
    )


def load_burn() -> UpliftData:
    """Load the burn study: total body cleansing against routine bathing.

    154 patients, 70 routine bathing (control) and 84 body cleansing. Success is a time to infection with
    *Staphylococcus aureus* (T3), or to the end of the stay, of at least the median.

    Covariates kept (10): Z2 gender, Z3 race, Z4 percentage of the body burned; the site of the burn: Z5 head, Z6
    buttock, Z7 trunk, Z8 upper leg, Z9 lower leg, Z10 respiratory tract; Z11 type of burn (categorical: 1 chemical,
    2 scald, 3 electric, 4 flame). Left out: Obs, Z1 (the treatment), T3 and D3 (the outcome), T1, D1, T2, D2 (excision and
    antibiotics, which happen after the treatment began).
    """
    rows = table("burn", "load_burn", (*_BURN, "Z1", "T3", "D3"))
    return UpliftData(
        features(rows, _BURN, categorical=("Z11",)),
        _survival(rows, "T3", rows["D3"]),
        (rows["Z1"] == 1).to_numpy().astype(np.int64),
        name="burn",
        description="Burn study, body cleansing against routine bathing; success: no infection before the median time.",
        details=_times(rows, "T3", rows["D3"]),
    )


def load_hodg() -> UpliftData:
    """Load the lymphoma transplant study: allogenic against autologous bone marrow.

    43 patients, 27 autologous (control) and 16 allogenic transplants (treatment). Success is a time to death or
    relapse of at least the median.

    Covariates kept (3): dtype (categorical: 1 non-Hodgkin, 2 Hodgkin), score (Karnofsky), wtime (months waited for
    the transplant, known before it). Left out: gtype (the treatment), time, delta.
    """
    rows = table("hodg", "load_hodg", (*_HODG, "gtype", "time", "delta"))
    return UpliftData(
        features(rows, _HODG, categorical=("dtype",)),
        _survival(rows, "time", rows["delta"]),
        (rows["gtype"] == 1).to_numpy().astype(np.int64),
        name="hodg",
        description="Lymphoma transplants, allogenic against autologous; success: disease-free for at least the "
        "median.",
        details=_times(rows, "time", rows["delta"]),
    )


def load_bmt(outcome: Literal["acute", "chronic"] = "acute") -> UpliftData:
    """Load the bone marrow transplant trial: cells from peripheral blood against bone marrow.

    100 patients, 51 bone marrow (BM, control) and 49 peripheral blood (PB, treatment). Success is the absence of the
    graft-versus-host disease asked for.

    Covariates kept (3): dx, extent (both categorical), age. Left out: tx (the treatment), the grade of the disease,
    survtime, reltime, agvhtime, cgvhtime, stat, rcens, agvh, cgvh.

    Parameters
    ----------
    outcome : "acute" or "chronic"
    """
    check("outcome", outcome, one_of("acute", "chronic"))
    column = "agvh" if outcome == "acute" else "cgvh"
    rows = table("bmt", "load_bmt", (*_BMT, "tx", column))
    return UpliftData(
        features(rows, _BMT),
        (rows[column] == 0).to_numpy().astype(np.int64),
        (rows["tx"] == "PB").to_numpy().astype(np.int64),
        name=f"BMT-{column}",
        description=f"Bone marrow transplants, peripheral blood against marrow; success: no {outcome} "
        "graft-versus-host disease.",
    )


def load_tamoxifen(outcome: Literal["alive", "survival"] = "alive") -> UpliftData:
    """Load the tamoxifen trial in breast cancer: tamoxifen with radiotherapy against tamoxifen alone.

    641 patients, 321 tamoxifen (control) and 320 with radiotherapy (treatment).

    Covariates kept (6): pathsize, hist, hgb, nodediss, age, hrlevel (hist, nodediss and hrlevel categorical). Left
    out: tx (the treatment), survtime, stat, and the times and censoring of all relapses.

    Parameters
    ----------
    outcome : "alive" or "survival"
        Alive at the last follow-up (``stat == 0``), or a survival time of at least the median.
    """
    check("outcome", outcome, one_of("alive", "survival"))
    rows = table("tamoxifen", "load_tamoxifen", (*_TAMOXIFEN, "tx", "survtime", "stat"))
    if outcome == "alive":
        y = (rows["stat"] == 0).to_numpy().astype(np.int64)
        success = "alive at the last follow-up"
    else:
        y = _survival(rows, "survtime", rows["stat"])
        success = "survival of at least the median"
    return UpliftData(
        features(rows, _TAMOXIFEN),
        y,
        (rows["tx"] == "B").to_numpy().astype(np.int64),
        name=f"tamoxifen-{outcome}",
        description=f"Breast cancer trial, tamoxifen with radiotherapy against tamoxifen alone; success: {success}.",
        details=_times(rows, "survtime", rows["stat"]),
    )


def load_rhc(outcome: Literal["death", "180d", "30d"] = "death") -> UpliftData:
    """Load the right heart catheterisation study. **It is not randomised**: doctors chose whom to treat.

    5,735 critically ill patients: 2,184 catheterised (treatment), 3,551 not. Success is survival.

    Covariates kept (53), those of Table 6.5.1 in [1]_: age, sex, race, edu, income, ninsclas, cat1, cat2, resp,
    card, neuro, gastr, renal, meta, hema, seps, trauma, ortho, adld3p, das2d3pc, dnr1, ca, surv2md1, aps1, scoma1,
    wtkilo1, temp1, meanbp1, resp1, hrt1, pafi1, paco21, ph1, wblc1, hema1, sod1, pot1, crea1, bili1, alb1, urin1,
    cardiohx, chfhx, dementhx, psychhx, chrpulhx, renalhx, liverhx, gibledhx, malighx, immunhx, transhx, amihx. Text
    columns are categories, and missing values (cat2, adld3p, urin1) stay. Left out: swang1 (the treatment), death,
    dth30, t3d30, sadmdte, dschdte, dthdte, lstctdte, ptid.

    Parameters
    ----------
    outcome : "death", "180d" or "30d"
        Survival by the column ``death`` (3,722 died, whenever known), to day 180 by the dates of admission and death,
        or to day 30 by the column ``dth30``.

    References
    ----------
    .. [1] Ł. Zaniewicz, *Support Vector Machines for Uplift Modeling*, 2018, section 6.5.
    """
    check("outcome", outcome, one_of("death", "180d", "30d"))
    rows = table("rhc", "load_rhc", (*_RHC, "swang1", "death", "dth30", "sadmdte", "dthdte"))
    if outcome == "180d":
        died = (rows["dthdte"] - rows["sadmdte"]) <= 180
    else:
        died = rows["death" if outcome == "death" else "dth30"] == "Yes"
    return UpliftData(
        features(rows, _RHC),
        (~died).to_numpy().astype(np.int64),
        (rows["swang1"] == "RHC").to_numpy().astype(np.int64),
        name=f"rhc-{outcome}",
        description="Right heart catheterisation, observational: the treatment was not randomised; success: survival.",
    )


def load_rotterdam() -> UpliftData:
    """Load the Rotterdam breast cancer cohort: hormonal therapy or none. **It is not randomised.**

    2,982 patients, 339 with hormonal therapy (treatment). Success is a time to death, or to the end of follow-up, of
    at least the median.

    Covariates kept (9): year, age, meno, size (categorical), grade, nodes, pgr, er, chemo. Left out: pid, hormon (the
    treatment), rtime, recur, dtime, death.
    """
    rows = table("rotterdam", "load_rotterdam", (*_ROTTERDAM, "hormon", "dtime", "death"))
    return UpliftData(
        features(rows, _ROTTERDAM),
        _survival(rows, "dtime", rows["death"]),
        (rows["hormon"] == 1).to_numpy().astype(np.int64),
        name="rotterdam",
        description="Rotterdam cohort, observational: hormonal therapy was not randomised; success: survival of at "
        "least the median.",
        details=_times(rows, "dtime", rows["death"]),
    )
