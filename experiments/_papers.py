"""The five papers, and every table and figure in them: what an experiment does not show says here why."""

from __future__ import annotations

from dataclasses import dataclass

PRIVATE = "cannot be replicated: the data are private"
DRAWING = "a drawing that explains, not a result"


@dataclass(frozen=True)
class Paper:
    """A paper: its tables and figures in order, each with what it shows and, unless an experiment shows it, why none does."""

    number: str
    title: str
    items: tuple[tuple[str, str, str], ...]


PAPERS = (
    Paper(
        "000",
        "Ł. Zaniewicz, *Support Vector Machines for Uplift Modeling*, 2018",
        (
            ("Table 1.2.1", "potential outcomes of four people", "an example, not a result"),
            ("Figure 2.2.1", "slacks of a machine", DRAWING),
            ("Figure 3.1.1", "penalties of the uplift machine", DRAWING),
            ("Figure 3.3.1", "the ratio moves and turns the hyperplanes", ""),
            ("Figure 4.2.1", "dual coordinate descent", 'an algorithm: `UpliftSVM(solver="dcd")`'),
            ("Figure 5.3.1", "stochastic gradient descent", 'an algorithm: `UpliftSVM(solver="asgd")`'),
            ("Figure 6.1.1", "uplift curves of three machines on breast-cancer", ""),
            ("Table 6.2.1", "UCI sets split by an attribute", ""),
            ("Figure 6.3.1", "signs against the ratio, breast-cancer", ""),
            ("Figure 6.3.2", "signs against the ratio, australian", ""),
            ("Table 6.4.1", "six methods on 28 data sets", ""),
            ("Table 6.4.2", "powers of the slacks on 28 data sets", ""),
            ("Table 6.5.1", "columns of right heart catheterisation", "a list of columns: the docstring of `load_rhc`"),
            ("Figure 6.5.1", "ROC curve of the propensity", ""),
            ("Figure 6.5.2", "uplift curves at six weights of the energy term", ""),
            ("Table 6.5.2", "areas and differences of scores at six weights", ""),
            ("Figure 6.5.3", "distribution of scores in the two groups", ""),
            ("Figure 6.5.4", "differences of scores against the weight", ""),
        ),
    ),
    Paper(
        "001",
        "M. Sołtys and S. Jaroszewicz, *Boosting algorithms for uplift modeling*, 2018",
        (
            ("Table 1", "coefficients of the three algorithms", "formulas: tests of `upturn.boosting` name them"),
            ("Table 2", "data sets", ""),
            ("Figure 1", "uplift curves as the ensemble grows, veteran", ""),
            ("Figure 2", "uplift curves as the ensemble grows, colon death", ""),
            ("Figure 3", "AUUC against ensemble size, stumps", ""),
            ("Figure 4", "AUUC against ensemble size, trees of height 3", ""),
            ("Table 3", "properties of the three algorithms", "theorems: tests of `upturn.boosting` check each"),
        ),
    ),
    Paper(
        "002",
        "Y. Zhao, X. Fang and D. Simchi-Levi, *A practically competitive and provably consistent algorithm for uplift modeling*, 2017",
        (
            ("Figure 1", "the best rule in two dimensions", ""),
            ("Figure 2", "rules found by UCTS and CTS", ""),
            ("Figure 3", "expected response of UCTS and CTS", ""),
            ("Figure 4", "expected response against training size, 50 dimensions", ""),
            ("Figure 5", "revenue of an airline's prices", PRIVATE),
            ("Figure 6", "modified uplift curves of an airline's prices", PRIVATE),
        ),
    ),
    Paper(
        "003",
        "F. Kuusisto et al., *Support vector machines for differential prediction*, 2014",
        (
            ("Table 1", "four kinds of customers", "a definition: `simulate_customers`"),
            ("Figure 1", "uplift curves of three machines on simulated customers", ""),
            ("Figure 2", "ROC curves for persuadables", ""),
            ("Table 2", "breast cancer and infarction data", PRIVATE),
            ("Table 3", "five machines on breast cancer", PRIVATE),
            ("Table 4", "five machines on infarction", PRIVATE),
            ("Figure 3", "uplift curves, breast cancer", PRIVATE),
            ("Figure 4", "uplift curves, infarction", PRIVATE),
        ),
    ),
    Paper(
        "004",
        "M. Rafla et al., *A non-parametric Bayesian approach for uplift discretization and feature selection*, 2022",
        (
            ("Figure 1", "parameters of a discretisation", DRAWING),
            ("Figure 2", "the synthetic patterns", ""),
            ("Figure 3", "intervals and errors, crenel pattern 1", ""),
            ("Figure 4", "intervals and errors, crenel pattern 2", ""),
            ("Figure 5", "intervals and errors, the other patterns", ""),
            ("Figure 6", "Qini of selected features among noise", ""),
            ("Figure 7", "noise that is selected", ""),
        ),
    ),
)
