"""RaNNC: atomic subcomponents, blocks, stages (Tanaka et al., IPDPS 2021)."""
