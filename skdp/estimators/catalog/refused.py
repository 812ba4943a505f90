"""Estimators that are not released by their parameters: the reason, and what is possible."""

from __future__ import annotations

from skdp.estimators.catalog.entry import Entry

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
    "its vocabulary is taken from the records, and a word may name a person. Use "
    "HashingVectorizer, which learns nothing, or wrap one fitted on public text in FrozenEstimator"
)
SUPPORT_VECTORS = "its fitted state is the training records that support it"
SEARCHED = (
    "what it selects is chosen by scores on the private records, to which no noise is added. "
    "Choose on public records, and wrap the estimator with what was chosen"
)
BOOSTED = (
    "each of its members is fitted to what those before it got wrong on the private records, so no "
    "structure is public and one record moves all later members. Use RandomForest{kind} or "
    "ExtraTrees{kind}, whose leaf values are released, or a linear model"
)
DEPTHS = (
    "what it does with a record depends on the depth of a leaf and not on a value in it. Grown on "
    "public records it can be used as it is, in a FrozenEstimator"
)

REASONS: dict[str, str] = {
    "sklearn.manifold TSNE MDS ClassicalMDS SpectralEmbedding": EMBEDDING,
    "sklearn.manifold Isomap LocallyLinearEmbedding": (
        f"{RECORDS}: it embeds a new record among its neighbors. Use PCA or FactorAnalysis"
    ),
    "sklearn.cluster AgglomerativeClustering DBSCAN FeatureAgglomeration HDBSCAN OPTICS "
    "SpectralClustering SpectralBiclustering SpectralCoclustering": LABELLING,
    "sklearn.cluster.AffinityPropagation": (
        "its centers are training records. Use KMeans or GaussianMixture"
    ),
    "sklearn.cluster MeanShift Birch": (
        "the number of its clusters depends on the data. Use KMeans or GaussianMixture"
    ),
    "sklearn.cluster.BisectingKMeans": (
        "it predicts from a tree of splits that scikit-learn keeps in a private attribute. Use "
        "KMeans"
    ),
    "sklearn.neighbors KNeighborsClassifier KNeighborsRegressor KNeighborsTransformer "
    "KernelDensity LocalOutlierFactor NearestNeighbors RadiusNeighborsClassifier "
    "RadiusNeighborsRegressor RadiusNeighborsTransformer": f"{RECORDS}. {FEW_FEATURES}",
    "sklearn.semi_supervised LabelPropagation LabelSpreading": f"{RECORDS}. {FEW_FEATURES}",
    "sklearn.gaussian_process GaussianProcessClassifier GaussianProcessRegressor": (
        f"{RECORDS}. {FEW_FEATURES}"
    ),
    "sklearn.svm.OneClassSVM": (
        f"{SUPPORT_VECTORS}. Use SGDOneClassSVM, after RBFSampler for a kernel. {FEW_FEATURES}"
    ),
    "sklearn.kernel_ridge.KernelRidge": f"{RECORDS}. Use Ridge, after RBFSampler for a kernel",
    "sklearn.decomposition.KernelPCA": f"{RECORDS}. Use PCA, after RBFSampler for a kernel",
    "sklearn.preprocessing.KernelCenterer": (
        "it centers kernels with the training records. Use RBFSampler and StandardScaler"
    ),
    "sklearn.impute.KNNImputer": f"{RECORDS}. Use SimpleImputer",
    "sklearn.impute.IterativeImputer": (
        "it fits regressions to what those before them imputed, so that noise in one moves all "
        "later ones. Use SimpleImputer"
    ),
    "sklearn.model_selection GridSearchCV RandomizedSearchCV": SEARCHED,
    "sklearn.model_selection.TunedThresholdClassifierCV": (
        "its threshold is chosen by scores on the private records, to which no noise is added. "
        "Use FixedThresholdClassifier, with a threshold chosen on public records"
    ),
    "sklearn.linear_model.RANSACRegressor": (
        "which records it takes for outliers depends on each of them, so that one record may "
        "exchange the whole model. Use HuberRegressor"
    ),
    "sklearn.semi_supervised.SelfTrainingClassifier": (
        "which records it labels by itself depends on each of them, so that one record may "
        "exchange many labels. Fit its estimator to the labeled records alone"
    ),
    "sklearn.feature_extraction.text CountVectorizer TfidfVectorizer": VOCABULARY,
    "sklearn.feature_extraction.DictVectorizer": (
        "its columns are taken from the records, and one may name a person. Use FeatureHasher, "
        "which learns nothing, to transform public and private records beforehand"
    ),
    "sklearn.preprocessing LabelBinarizer LabelEncoder MultiLabelBinarizer": (
        "it transforms labels, and these are public. Use it as it is, on the declared labels"
    ),
    "sklearn.ensemble AdaBoostClassifier GradientBoostingClassifier "
    "HistGradientBoostingClassifier": BOOSTED.format(kind="Classifier"),
    "sklearn.ensemble AdaBoostRegressor GradientBoostingRegressor "
    "HistGradientBoostingRegressor": BOOSTED.format(kind="Regressor"),
}

ENTRIES: dict[str, Entry] = {
    **{names: Entry(refuse=reason) for names, reason in REASONS.items()},
    "sklearn.cross_decomposition.PLSSVD": Entry(
        refuse="scikit-learn keeps the means and scales of its transform in private attributes. "
        "Use PLSRegression, or PCA to transform",
        uses_response=True,
    ),
    "sklearn.feature_selection GenericUnivariateSelect SelectFdr SelectFpr SelectFwe "
    "SelectKBest SelectPercentile": Entry(refuse=SELECTION, uses_response=True, by_record=True),
    "sklearn.feature_selection RFE RFECV SelectFromModel SequentialFeatureSelector": Entry(
        refuse=SELECTION, uses_response=True, passes_gaps=True
    ),
    "sklearn.feature_selection.VarianceThreshold": Entry(
        refuse=SELECTION, uses_response=False, passes_gaps=True, by_record=True
    ),
    "sklearn.ensemble IsolationForest RandomTreesEmbedding": Entry(refuse=DEPTHS, by_record=True),
}
