"""What keeps a short command short leaves everything else as it was."""

import subprocess
import sys

from golden_lines import SOURCE


def run(*lines):
    """What a fresh process prints."""
    program = "\n".join(["import sys", f"sys.path.insert(0, {str(SOURCE)!r})", *lines])
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return ran.stdout.split()


def test_scikit_learn_comes_without_scipys_statistics():
    found = run(
        "from upturn.cli._short import import_sklearn",
        "import_sklearn()",
        "print('scipy.stats' in sys.modules, 'sklearn.base' in sys.modules)",
        "import types",
        "kept = [m.__name__ for m in list(sys.modules.values()) for v in list(vars(m).values())"
        " if isinstance(v, types.ModuleType) and v.__name__ == 'scipy.stats']",
        "print(kept == [])",
        "import scipy",
        "print(round(float(scipy.stats.norm.cdf(0.0)), 3), scipy.stats is sys.modules['scipy.stats'])",
        "from scipy.stats import distributions, rankdata",
        "print(rankdata([2, 1]).tolist()[0], distributions.__name__)",
    )
    assert found == ["False", "True", "True", "0.5", "True", "2.0", "scipy.stats.distributions"]


def test_whoever_asks_the_empty_module_gets_the_real_one(tmp_path):
    """As another version of scikit-learn might, while it is imported."""
    folder = tmp_path / "sklearn"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "base.py").write_text(
        "from scipy import stats\nfrom scipy.stats import rankdata\nimport scipy.stats.distributions\n"
    )
    found = run(
        f"sys.path.insert(0, {str(tmp_path)!r})",
        "from upturn.cli._short import import_sklearn",
        "import_sklearn()",
        "import scipy.stats, sklearn.base as asked",
        "print(asked.rankdata is scipy.stats.rankdata, asked.stats.norm is scipy.stats.norm, scipy.stats is sys.modules['scipy.stats'])",
        "print(scipy.stats.__name__, hasattr(scipy.stats, 'norm'))",
    )
    assert found == ["True", "True", "True", "scipy.stats", "True"]


def test_where_they_are_there_already_nothing_is_done():
    found = run(
        "import scipy.stats as before",
        "from upturn.cli._short import import_sklearn",
        "import_sklearn()",
        "import scipy.stats",
        "print(scipy.stats is before, 'sklearn' in sys.modules)",
    )
    assert found == ["True", "False"]


def test_the_process_of_others_is_left_alone():
    found = run(
        "import gc",
        "from upturn.cli import main",
        "before = gc.get_threshold()",
        "main(['datasets', 'list', '--quiet'])",
        "print('|', gc.get_threshold() == before, gc.get_freeze_count())",
    )
    assert found[found.index("|") + 1 :] == ["True", "0"]
