"""Hillstrom's e-mail campaign in ten lines: did the women's mailing bring people to the shop, and whom should get it?"""

from upturn import check, datasets, meta, metrics, model_selection, policy

data = datasets.load_hillstrom("visit", "women")
print(check(data.X, data.y, data.treatment))
parts = model_selection.uplift_train_test_split(data.X, data.y, data.treatment, test_size=0.5, random_state=0)
X, X_new, y, y_new, t, t_new = parts
models = {"X-learner": meta.XLearner(random_state=0), "two models": meta.TLearner(random_state=0)}
scores = {name: model.fit(X, y, t).predict(X_new) for name, model in models.items()}
print(metrics.compare(y_new, scores, t_new, random_state=0))
plan = policy.target(scores["X-learner"], fraction=0.2, y=y_new, treatment=t_new)
print(plan)  # whom to mail, and the extra visits per 1,000 people with their interval
print(plan.comparison)
