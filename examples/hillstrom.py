"""Hillstrom's e-mail campaign in ten lines: did the women's mailing bring people to the shop, and whom should get it?"""

import upturn as up
from upturn.datasets import load_hillstrom
from upturn.meta import TLearner, XLearner
from upturn.metrics import compare
from upturn.model_selection import uplift_train_test_split
from upturn.policy import target

data = load_hillstrom("visit", "women")
print(up.check(data.X, data.y, data.treatment))
X, X_new, y, y_new, t, t_new = uplift_train_test_split(data.X, data.y, data.treatment, test_size=0.5, random_state=0)
models = {"X-learner": XLearner(random_state=0), "two models": TLearner(random_state=0)}
scores = {name: model.fit(X, y, t).predict(X_new) for name, model in models.items()}
print(compare(y_new, scores, t_new, random_state=0))
plan = target(scores["X-learner"], fraction=0.2, y=y_new, treatment=t_new)
print(plan)  # whom to mail, and the extra visits per 1,000 people with their interval
print(plan.comparison)
