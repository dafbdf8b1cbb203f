"""Numbers along the axes of pictures. Imported only where something is drawn, as it needs matplotlib."""

from __future__ import annotations

from matplotlib.ticker import ScalarFormatter


class Plain(ScalarFormatter):
    """Numbers in full and with commas: 12,500,000, and no 1.25 under a 1e7 in the corner."""

    def __init__(self) -> None:
        super().__init__(useOffset=False)
        self.set_scientific(False)

    def __call__(self, x: float, pos: int | None = None) -> str:
        text = str(super().__call__(x, pos)).replace("\N{MINUS SIGN}", "-")
        if not text:
            return text
        places = len(text.partition(".")[2])
        return f"{float(text):,.{places}f}".replace("-", "\N{MINUS SIGN}")
