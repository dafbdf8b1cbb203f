"""Models that combine others: which model to choose is answered by the rows themselves.

===================  ==============================================================================================
``_candidates``      the models that take part, made ready for any number of arms and for scores without a unit
``_losses``          what a prediction of effects costs on rows it has not seen: the R-loss and the doubly robust one
``_weights``         non-negative weights that add up to at most 1, and how much they are shrunk
``_combine``         the stack of one arm
``_stack``           a fitted stack, whoever found it: predictions, tables, the saved form
``_stacking``        the stack of all candidates
``_effort``          what is tried: rows, trees, and the time there is
``_unseen``          predictions of rows that a fit has not seen, made once and kept in a journal
``_evidence``        whether effects differ at all
``_search``          the halving of candidates, and the stack of those that are left
``_measured``        what a search predicts for rows that no candidate has seen
``_auto``            the model that chooses
===================  ==============================================================================================
"""

from upturn.ensemble._auto import UpliftAuto
from upturn.ensemble._stacking import UpliftStacking

__all__ = ["UpliftAuto", "UpliftStacking"]
