"""Predictions of rows by models that have not seen their folds: made when asked for, once, and kept in a journal."""

from __future__ import annotations

import base64
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import clone

from upturn._arrays import Bools, Floats, Indices, Ints
from upturn._experiment import Experiment
from upturn._nuisance import Choice, Shelf, seed_of
from upturn._parallel import run_parallel
from upturn.base import UpliftEstimator
from upturn.boosting._base import seeded
from upturn.ensemble._effort import Clock, Step, trees_of, with_trees
from upturn.ensemble._inside import fit_inside
from upturn.model_selection._journal import Lines, digest, fingerprint

_SHELF = 1 << 20  # what the seeds of shelves are for, beyond all candidates
_VERSION = "2"  # of what a job predicts
Job = tuple[int, int, tuple[int, ...]]  # step, candidate, folds that are left out


@dataclass
class Unseen:
    """Fits of candidates to parts of an experiment.

    A job (step, candidate, folds) is a fit of the candidate to the step's rows outside the folds, and what it predicts for the
    step's rows inside them. ``place`` orders rows: a step takes the first ones, of which a candidate learns from at most its
    number of ``most``.
    """

    data: Experiment
    models: list[UpliftEstimator]
    steps: list[Step]
    most: list[int]
    place: Ints
    fold: Ints
    seed: np.uint64
    choice: Choice
    clock: Clock
    lines: Lines
    n_jobs: int | None
    verbose: int
    forgiving: bool  # whether a candidate that fails is left out instead of ending the search
    failed: dict[int, Exception] = field(default_factory=dict)
    _known: dict[Job, Floats] = field(default_factory=dict)
    _shelves: dict[tuple[int, tuple[int, ...]], Shelf] = field(default_factory=dict)
    _lock: Any = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        if self.lines.kept:
            target = self.data.target
            schema = repr(self.data.schema.to_json())
            whole = [self.data.X, target.y, target.arm, target.weight, self.place, self.fold]
            chosen = [self.choice.kind, self.choice.spec, self.choice.calibration]
            self._data = digest(_VERSION, fingerprint(whole), fingerprint(chosen), schema, str(int(self.seed)))

    def rows(self, step: int, folds: Sequence[int]) -> Indices:
        """The rows of some folds that a step asks about, ascending."""
        return np.flatnonzero((self.place < self.steps[step].asked) & np.isin(self.fold, folds))

    def work(self, jobs: Sequence[Job]) -> float:
        """Rows × trees of jobs, those done already not counted."""
        n_folds = int(self.fold.max()) + 1
        n_arms = self.data.n_arms
        return sum(
            min(self.steps[step].learnt, self.most[j]) * (1 - len(out) / n_folds) * trees_of(self.models[j], n_arms)
            for step, j, out in jobs
            if (step, j, out) not in self._known
        )

    def make(self, jobs: Sequence[Job], description: str) -> None:
        """Do the jobs that are not done yet."""
        todo = [job for job in dict.fromkeys(jobs) if job not in self._known and job[1] not in self.failed]
        # the longest first, so that no thread is left alone with one at the end
        todo.sort(key=lambda job: -trees_of(self.models[job[1]], self.data.n_arms))
        start, work = time.monotonic(), self.work(todo)
        run_parallel(self._one, todo, n_jobs=self.n_jobs, verbose=self.verbose, description=description)
        if todo:
            self.clock.paced(work, time.monotonic() - start)

    def _one(self, job: Job) -> None:
        step, j, out = job
        if j in self.failed:
            return
        asked = self.rows(step, out)
        key = self._key(job)
        found = self._read(key, len(asked))
        if found is None:
            try:
                found = self.fit(job, self.steps[step].learnt)._predict(self.data.X[asked])
                if not np.isfinite(found).all():
                    raise ValueError(
                        "predicts effects that are not finite numbers: look at the model inside, or leave it out"
                    )
            except (ValueError, TypeError, ArithmeticError) as error:
                if not self.forgiving:
                    raise
                with self._lock:
                    self.failed[j] = error
                return
            self._write(key, found)
        self._known[job] = np.ascontiguousarray(found, dtype=np.float64)

    def fit(self, job: Job, learnt: int) -> UpliftEstimator:
        """The candidate of a job, fitted to the first ``learnt`` rows outside its folds."""
        step, j, out = job
        model = with_trees(clone(self.models[j]), self.steps[step].trees)
        own = np.uint64(seed_of(self.seed, j, step))
        model = seeded(model, own, sum(2**f for f in out))
        inside = self.place < min(learnt, self.most[j])
        if out:
            inside &= ~np.isin(self.fold, out)
        fit_inside(
            model, self.data if inside.all() else self.data.take(np.flatnonzero(inside)), self._shelf(inside, out)
        )
        return model

    def _shelf(self, inside: Bools, out: tuple[int, ...]) -> Shelf:
        """What candidates that learn from the same rows share."""
        n = int(inside.sum())
        with self._lock:
            return self._shelves.setdefault((n, out), Shelf(seed_of(self.seed, _SHELF, n, *out), self.choice))

    def take(self, step: int, j: int, out: tuple[int, ...], folds: Sequence[int]) -> Floats:
        """What a job predicted for those of its rows that are in some folds."""
        rows = self.rows(step, out)
        return self._known[step, j, out][np.isin(self.fold[rows], folds)]

    # ------------------------------------------------------------------------------------------ the journal

    def _key(self, job: Job) -> str:
        if not self.lines.kept:
            return ""
        step, j, out = job
        return digest(self._data, fingerprint(self.models[j]), repr((j, step, self.steps[step], self.most[j], out)))

    def _read(self, key: str, n: int) -> Floats | None:
        found = self.lines.find_key(key) if self.lines.kept else None
        if found is None:
            return None
        try:
            array = np.frombuffer(base64.b64decode(found["effects"]), "<f8")
        except ValueError:  # not what this wrote
            return None
        shape = (n, self.data.n_arms)
        return array.reshape(shape) if array.size == n * self.data.n_arms and np.isfinite(array).all() else None

    def _write(self, key: str, effects: Floats) -> None:
        if self.lines.kept:
            data = base64.b64encode(np.ascontiguousarray(effects, dtype="<f8").tobytes()).decode()
            self.lines.add_key(key, {"effects": data})
