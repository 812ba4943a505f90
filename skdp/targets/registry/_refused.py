"""Estimators that are not released by their parameters: the reason, and what is possible."""

from __future__ import annotations

from sklearn import (
    cluster,
    decomposition,
    feature_extraction,
    feature_selection,
    gaussian_process,
    impute,
    kernel_ridge,
    manifold,
    neighbors,
    preprocessing,
    semi_supervised,
    svm,
)

from skdp.targets.registry._entry import select

FEW_FEATURES = (
    "With up to 3 features release its function through BernsteinTransformer; with more use a "
    "model with parameters"
)
RECORDS = "its fitted state is the training records themselves"
EMBEDDING = (
    "it places the training records and gives no function of new ones. Use PCA, FactorAnalysis or "
    "TruncatedSVD"
)
LABELLING = (
    "its result is one label for each training record, and no function of new ones. Use KMeans or "
    "GaussianMixture"
)
SELECTION = (
    "which columns it selects depends on the data, and a selection is no vector that noise can be "
    "added to. Select the columns on public data and wrap the selector in FrozenEstimator, or use "
    "all columns"
)
VOCABULARY = (
    "its vocabulary is taken from the records, and a word may name a person. Use FeatureHasher or "
    "HashingVectorizer, which learn nothing, or wrap one fitted on public text in FrozenEstimator"
)
SUPPORT_VECTORS = "its fitted state are the training records that support it"


def _refuse(module: object, names: str, reason: str) -> dict[type, str]:
    return dict.fromkeys(select(module, names), reason)


REFUSED: dict[type, str] = {
    **_refuse(manifold, "TSNE MDS ClassicalMDS SpectralEmbedding", EMBEDDING),
    **_refuse(
        manifold,
        "Isomap LocallyLinearEmbedding",
        f"{RECORDS}: it embeds a new record among its neighbors. Use PCA or FactorAnalysis",
    ),
    **_refuse(
        cluster,
        "AgglomerativeClustering DBSCAN FeatureAgglomeration HDBSCAN OPTICS SpectralClustering "
        "SpectralBiclustering SpectralCoclustering",
        LABELLING,
    ),
    **_refuse(
        cluster,
        "AffinityPropagation",
        "its centers are training records. Use KMeans or GaussianMixture",
    ),
    **_refuse(
        cluster,
        "MeanShift Birch",
        "the number of its clusters depends on the data. Use KMeans or GaussianMixture",
    ),
    **_refuse(
        neighbors,
        "KNeighborsClassifier KNeighborsRegressor KNeighborsTransformer KernelDensity "
        "LocalOutlierFactor NearestNeighbors RadiusNeighborsClassifier RadiusNeighborsRegressor "
        "RadiusNeighborsTransformer",
        f"{RECORDS}. {FEW_FEATURES}",
    ),
    **_refuse(semi_supervised, "LabelPropagation LabelSpreading", f"{RECORDS}. {FEW_FEATURES}"),
    **_refuse(
        gaussian_process,
        "GaussianProcessClassifier GaussianProcessRegressor",
        f"{RECORDS}. {FEW_FEATURES}",
    ),
    **_refuse(
        svm,
        "NuSVC NuSVR OneClassSVM SVC SVR",
        f"{SUPPORT_VECTORS}. Use LinearSVC, LinearSVR or SGDOneClassSVM, after RBFSampler for "
        f"a kernel. {FEW_FEATURES}",
    ),
    kernel_ridge.KernelRidge: f"{RECORDS}. Use Ridge, after RBFSampler for a kernel",
    decomposition.KernelPCA: f"{RECORDS}. Use PCA, after RBFSampler for a kernel",
    preprocessing.KernelCenterer: (
        "it centers kernels with the training records. Use RBFSampler and StandardScaler"
    ),
    impute.KNNImputer: f"{RECORDS}. Use SimpleImputer or IterativeImputer",
    **_refuse(
        feature_selection,
        "GenericUnivariateSelect RFE RFECV SelectFdr SelectFpr SelectFromModel SelectFwe "
        "SelectKBest SelectPercentile SequentialFeatureSelector VarianceThreshold",
        SELECTION,
    ),
    **_refuse(feature_extraction.text, "CountVectorizer TfidfVectorizer", VOCABULARY),
    feature_extraction.DictVectorizer: VOCABULARY,
    **_refuse(
        preprocessing,
        "LabelBinarizer LabelEncoder MultiLabelBinarizer",
        "it transforms labels, and these are public. Use it as it is, on the declared labels",
    ),
}
