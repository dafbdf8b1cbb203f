"""Models that combine others: which model to choose is answered by the rows themselves.

===================  ==============================================================================================
``_candidates``      the models that take part, made ready for any number of arms and for scores without a unit
``_losses``          what a prediction of effects costs on rows it has not seen: the R-loss and the doubly robust one
``_weights``         non-negative weights that add up to at most 1, and how much they are shrunk
``_stacking``        the model made of them
===================  ==============================================================================================
"""

from upturn.ensemble._stacking import UpliftStacking

__all__ = ["UpliftStacking"]
