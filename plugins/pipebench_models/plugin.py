"""What this plugin offers: model descriptors; options stand beside."""

from pipebench.hooks import hookimpl
from pipebench.hooks.descriptors import Model
from pipebench_models.llm_options import LLMOptions
from pipebench_models.options import (
    AlexNetOptions,
    BertOptions,
    CandleUnoOptions,
    CaseStudyOptions,
    CLIPOptions,
    DLRMOptions,
    InceptionOptions,
    MMTOptions,
    PlainInceptionOptions,
    PooledImageOptions,
    ResNetOptions,
    RNNLMOptions,
    TinyMMTOptions,
    TransformerOptions,
    TranslationOptions,
)

PIPEBENCH_API = 1


TORCHVISION = "as torchvision builds it, for images of any size"
RESNET = "He et al., Deep Residual Learning for Image Recognition, CVPR 2016"
PASE = "Elango, PaSE: Parallelization Strategies for Efficient DNN Training, IPDPS 2021, section IV"
PROTOTYPE = "sizes and vertices are those of the released prototype; the paper's text does not list them"
GRAPHPIPE = "Jeon et al., GraphPipe, ASPLOS 2025"
TOKENS_ONLY = (
    "inputs are embedded tokens: no embedding table and no loss",
    "no residual connections and layer norms unless residual=true",
)


@hookimpl
def pipebench_models() -> tuple[Model, ...]:
    """Convolutional networks, language models, CLIP, and the models of the GraphPipe and PaSE papers."""
    return (
        *image_models(),
        *pase_models(),
        language_model(),
        Model(
            name="bert",
            summary="BERT with its pre-training losses, an operator for each task of the traced program",
            load="pipebench_models.bert:build_bert",
            options=BertOptions,
            reference="Devlin et al., BERT, NAACL 2019; enlarged as in Tanaka et al., RaNNC, IPDPS 2021",
            deviations=(
                "tasks as in NVIDIA's PyTorch code, which the RaNNC paper uses, read from its description: 56 a "
                "layer; the paper counts about 15,000 for 256 layers, this graph has 14,387",
                "heads of 64 features at every width; the paper does not say",
                "the word table serves two operators: each of their stages holds it, and nothing is charged for "
                "adding the gradients of the two",
                "dropout, masks and losses as in pre-training; every position is scored against the vocabulary",
            ),
        ),
        Model(
            name="mmt",
            summary="Multi-Modal Transformer: parallel branches of layers, concatenated at the end",
            load="pipebench_models.branch_models:build_mmt",
            options=MMTOptions,
            reference=f"{GRAPHPIPE}, appendix A.2",
            deviations=TOKENS_ONLY,
        ),
        Model(
            name="tiny-mmt",
            summary="the Multi-Modal Transformer small enough to run on CPU processes in a moment",
            load="pipebench_models.branch_models:build_mmt",
            options=TinyMMTOptions,
            reference=f"{GRAPHPIPE}, appendix A.2",
            deviations=("two branches of two layers of width 64", *TOKENS_ONLY),
        ),
        Model(
            name="transformer",
            summary="sequential Transformer with the configuration of the Multi-Modal Transformer",
            load="pipebench_models.branch_models:build_transformer",
            options=TransformerOptions,
            reference=f"{GRAPHPIPE}, appendix A.3",
            deviations=TOKENS_ONLY,
        ),
        Model(
            name="case-study",
            summary="two branches of four Transformer layers, concatenated: one stage a layer on 8 devices",
            load="pipebench_models.branch_models:build_mmt",
            options=CaseStudyOptions,
            reference=f"{GRAPHPIPE}, section 7.5",
            deviations=("sizes of a layer are those of appendix A.2; the section gives none", *TOKENS_ONLY),
        ),
        Model(
            name="dlrm",
            summary="recommendation: branches of dense features and of embedding tables meet in one interaction",
            load="pipebench_models.branch_models:build_dlrm",
            options=DLRMOptions,
            reference=f"{GRAPHPIPE}, appendix A.2; Naumov et al., DLRM, 2019",
            deviations=(
                "7 + 7 branches as in appendix A.2; section 7.2 speaks of eight (dense=4,sparse=4)",
                "four feed-forward layers behind the interaction; the paper does not say how many",
                "the interaction is a concatenation, as in the paper; no loss",
                "gradients of embedding tables are all-reduced whole, as other weights are",
            ),
        ),
        Model(
            name="candle-uno",
            summary="drug response: branches of feed-forward layers, concatenated before the output",
            load="pipebench_models.branch_models:build_candle_uno",
            options=CandleUnoOptions,
            reference=f"{GRAPHPIPE}, appendix A.2",
            deviations=(
                "7 branches as in appendix A.2; section 7.2 speaks of eight (branches=8)",
                "one linear layer of width 1 behind the concatenation; the paper does not say; no loss",
            ),
        ),
        Model(
            name="clip",
            summary="CLIP ViT-B/32: an image and a text branch of different size, compared at the end",
            load="pipebench_models.branch_models:build_clip",
            options=CLIPOptions,
            reference="Radford et al., Learning Transferable Visual Models From Natural Language Supervision",
            deviations=(
                "attention without bias; one operator for all of it",
                "each image is compared with its own text only: no contrastive loss over the mini-batch",
            ),
        ),
    )


def image_models() -> tuple[Model, ...]:
    """The networks of the MadPipe paper's figures, and VGG-16."""
    return (
        Model(
            name="resnet50",
            summary=f"ResNet-50 {TORCHVISION}",
            load="pipebench_models.image_networks:build_resnet50",
            options=ResNetOptions,
            reference=RESNET,
            deviations=("stride in the 3x3 convolution, as in torchvision (v1.5)", "no loss"),
        ),
        Model(
            name="resnet101",
            summary=f"ResNet-101 {TORCHVISION}",
            load="pipebench_models.image_networks:build_resnet101",
            options=ResNetOptions,
            reference=RESNET,
            deviations=("stride in the 3x3 convolution, as in torchvision (v1.5)", "no loss"),
        ),
        Model(
            name="resnet152",
            summary=f"ResNet-152 {TORCHVISION}",
            load="pipebench_models.image_networks:build_resnet152",
            options=ResNetOptions,
            reference=RESNET,
            deviations=("stride in the 3x3 convolution, as in torchvision (v1.5)", "no loss"),
        ),
        Model(
            name="inception_v3",
            summary=f"Inception v3 {TORCHVISION}",
            load="pipebench_models.inception_v3:build_inception_v3",
            options=InceptionOptions,
            reference="Szegedy et al., Rethinking the Inception Architecture for Computer Vision, CVPR 2016",
            deviations=("no auxiliary classifier unless auxiliary=true", "no loss"),
        ),
        Model(
            name="densenet121",
            summary=f"DenseNet-121 {TORCHVISION}",
            load="pipebench_models.image_networks:build_densenet121",
            options=PooledImageOptions,
            reference="Huang et al., Densely Connected Convolutional Networks, CVPR 2017",
            deviations=(
                "a dense layer joins its channels to one tensor of all channels before it, as torchvision's first "
                "release did; later releases keep the features apart, with the same bytes",
                "no loss",
            ),
        ),
        Model(
            name="vgg16",
            summary=f"VGG-16 {TORCHVISION}",
            load="pipebench_models.image_networks:build_vgg16",
            options=PooledImageOptions,
            reference="Simonyan, Zisserman, Very Deep Convolutional Networks, ICLR 2015, configuration D",
            deviations=("no loss",),
        ),
    )


def pase_models() -> tuple[Model, ...]:
    """Four graphs whose operators name every dim of their iteration space."""
    return (
        Model(
            name="pase-alexnet",
            summary="AlexNet with the iteration spaces of PaSE's prototype: a chain of 14 operators",
            load="pipebench_models.pase_models:build_pase_alexnet",
            options=AlexNetOptions,
            reference=PASE,
            deviations=(PROTOTYPE, "1024 classes, as the prototype has", "no local response normalisation"),
        ),
        Model(
            name="pase-inception_v3",
            summary="Inception v3 with the vertices of PaSE's prototype: no activation functions, a loss",
            load="pipebench_models.pase_models:build_pase_inception_v3",
            options=PlainInceptionOptions,
            reference=PASE,
            deviations=(PROTOTYPE, "activation functions, dropout and flattening are no operators"),
        ),
        Model(
            name="pase-rnnlm",
            summary="language model of two LSTM layers, all their steps in one operator",
            load="pipebench_models.pase_models:build_rnnlm",
            options=RNNLMOptions,
            reference=PASE,
            deviations=(PROTOTYPE, "LSTM cells without bias"),
        ),
        Model(
            name="pase-transformer",
            summary="encoder and decoder for translation, every product of attention an operator",
            load="pipebench_models.pase_models:build_translation_transformer",
            options=TranslationOptions,
            reference=PASE,
            deviations=(PROTOTYPE, "query, key and value are one product, as in the prototype"),
        ),
    )


def language_model() -> Model:
    """Any of some architectures, from the figures of a config.json."""
    return Model(
        name="llm",
        summary=(
            "language model from a Hugging Face config.json (--config): llama, qwen, gemma, mixtral, deepseek, "
            "gpt2, bert, …"
        ),
        load="pipebench_models.llm:build_llm",
        options=LLMOptions,
        reference="Korthikanti et al., Reducing Activation Recomputation in Large Transformer Models, 2022",
        deviations=(
            "one operator a layer; flash attention, no scores are kept",
            "tokens spread evenly over experts, none is dropped",
            "no soft-capping or ALiBi; heads are rotated whole",
            "layers whose parts read one input exchange as often under tensor parallelism as others",
            "a table that embedding and head share is held at both ends, its gradients are not all-reduced",
        ),
    )
