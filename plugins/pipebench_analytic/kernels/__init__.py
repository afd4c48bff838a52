"""How long training kernels take: small sets of coefficients, fitted to measured tables, and the fits."""
