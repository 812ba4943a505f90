"""Colors that the color-blind tell apart, of Okabe and Ito (2008)."""

BLUE, VERMILION, GREEN = "#0072B2", "#D55E00", "#009E73"
