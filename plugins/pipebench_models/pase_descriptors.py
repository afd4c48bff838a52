"""Descriptors of the models of the PaSE paper."""

from pipebench.hooks.descriptors import Model
from pipebench_models.image_options import AlexNetOptions, PlainInceptionOptions
from pipebench_models.pase_options import RNNLMOptions, TranslationOptions

PASE = "Elango, PaSE: Parallelization Strategies for Efficient DNN Training, IPDPS 2021, section IV"
PROTOTYPE = "sizes and vertices are those of the released prototype; the paper's text does not list them"


def pase_models() -> tuple[Model, ...]:
    """Four graphs whose operators name every dim of their iteration space."""
    return (
        Model(
            name="pase-alexnet",
            summary="AlexNet with the iteration spaces of PaSE's prototype: a chain of 14 operators",
            load="pipebench_models.pase_alexnet:build",
            options=AlexNetOptions,
            reference=PASE,
            deviations=(PROTOTYPE, "1024 classes, as the prototype has", "no local response normalisation"),
        ),
        Model(
            name="pase-inception_v3",
            summary="Inception v3 with the vertices of PaSE's prototype: no activation functions, a loss",
            load="pipebench_models.pase_inception_v3:build",
            options=PlainInceptionOptions,
            reference=PASE,
            deviations=(PROTOTYPE, "activation functions, dropout and flattening are no operators"),
        ),
        Model(
            name="pase-rnnlm",
            summary="language model of two LSTM layers, all their steps in one operator",
            load="pipebench_models.pase_rnnlm:build",
            options=RNNLMOptions,
            reference=PASE,
            deviations=(PROTOTYPE, "LSTM cells without bias"),
        ),
        Model(
            name="pase-transformer",
            summary="encoder and decoder for translation, every product of attention an operator",
            load="pipebench_models.pase_transformer:build",
            options=TranslationOptions,
            reference=PASE,
            deviations=(PROTOTYPE, "query, key and value are one product, as in the prototype"),
        ),
    )
