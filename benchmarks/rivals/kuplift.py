"""kuplift: UMODL of single columns, by its authors."""

REQUIRES = ("kuplift==0.0.16",)


def discretise(x, y, t):
    import kuplift
    import pandas as pd

    encoding = kuplift.UnivariateEncoding()
    encoded = encoding.fit_transform(pd.DataFrame({"x": x}), pd.Series(t.astype(int)), pd.Series(y.astype(int)))
    return encoded.iloc[:, 0].nunique()


JOBS = {"discretise a column": discretise}
MODELS = {}
DRAWS = {}
