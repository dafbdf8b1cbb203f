"""The report: one page that goes from an experiment to a decision. Needs the extra ``[report]``.

===============  ========================================================================================================
``_held_out``    scores of every row by models that have not seen it
``_measure``     what those scores are worth: areas, curves, bins, the plan, every budget
``_people``      who they are: importances, groups in words, profiles
``_answer``      the verdict, and the sentences at the top
``_words``       numbers as people read them
``_found``       everything found, in one place
``_page``        all of it as plain values: tables of text; ``_charts`` the numbers of charts and slider, ``_appendix`` the rest
``_pictures``    the same charts as still pictures, for a page without JavaScript
``_html``        the template filled in; ``page/`` holds it, ``vendor/`` the chart library
``_report``      :func:`upturn.report` and what it returns
===============  ========================================================================================================
"""

from upturn._report._report import Report, report

__all__ = ["Report", "report"]
