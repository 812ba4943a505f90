"""Estimators that are not released by their parameters: the reason, and what is possible."""

from __future__ import annotations

from skdp.estimators.catalog.entry import Entry

RECORDS = "its fitted state is the training records themselves"
PREDICT = "Use release='predictions', with a SensitivitySampler or sensitivity='aggregate'"
FROZEN = "Use one that was fitted to public records, in a FrozenEstimator"
COMPONENTS = f"another record may lead to other components. Use PCA or TruncatedSVD. {FROZEN}"
MEMBERS = "its members have many more numbers than one model of their kind"
LEAVES = (
    "one record may move its splits. Put a RandomTreesEmbedding that was fitted to public records, "
    "in a FrozenEstimator, before a MomentClassifier"
)
SELECTION = (
    "which columns it selects depends on the data, and a selection is no vector that noise can be "
    "added to. Select the columns on public data and wrap the selector in FrozenEstimator, or use "
    "all columns"
)

# Those that predict, and are released by what they predict.
PREDICTORS: dict[str, str] = {
    "sklearn.neighbors KNeighborsClassifier KNeighborsRegressor KernelDensity LocalOutlierFactor "
    "RadiusNeighborsClassifier RadiusNeighborsRegressor": RECORDS,
    "sklearn.gaussian_process GaussianProcessClassifier GaussianProcessRegressor": RECORDS,
    "sklearn.svm.OneClassSVM": "its fitted state is the training records that support it",
    "sklearn.kernel_ridge.KernelRidge": RECORDS,
    "sklearn.semi_supervised LabelPropagation LabelSpreading SelfTrainingClassifier": (
        "which labels it gives to its own records depends on each of them"
    ),
    "sklearn.ensemble AdaBoostClassifier AdaBoostRegressor GradientBoostingClassifier "
    "GradientBoostingRegressor HistGradientBoostingClassifier HistGradientBoostingRegressor": (
        "each of its members is fitted to what those before it got wrong, so one record moves all "
        "later members"
    ),
    "sklearn.ensemble BaggingClassifier BaggingRegressor": MEMBERS,
    "sklearn.calibration.CalibratedClassifierCV": MEMBERS,
    "sklearn.multiclass.OutputCodeClassifier": MEMBERS,
    "sklearn.multioutput ClassifierChain RegressorChain": (
        "its members see the outputs of those before them"
    ),
    "sklearn.model_selection GridSearchCV RandomizedSearchCV TunedThresholdClassifierCV": (
        "what it selects is chosen by scores on the private records. Choose on public records, and "
        "wrap the estimator with what was chosen"
    ),
    "sklearn.linear_model.RANSACRegressor": (
        "which records it takes for outliers depends on each of them, so that one record may "
        "exchange the whole model"
    ),
    "sklearn.isotonic.IsotonicRegression": "its steps are at values of the records",
    "sklearn.neighbors.NearestCentroid": "its centers need deviations that the noise may hide",
    "sklearn.cross_decomposition CCA PLSCanonical PLSRegression": (
        "it predicts by means and scales that scikit-learn keeps in private attributes"
    ),
    "sklearn.mixture.BayesianGaussianMixture": (
        "its components are not the same ones in any two fits. Use GaussianMixture"
    ),
    "sklearn.covariance.EllipticEnvelope": "its threshold is a score of one record",
    "sklearn.decomposition.FactorAnalysis": "its factors are less stable than components. Use PCA",
}

REASONS: dict[str, str] = {
    **{names: f"{reason}. {PREDICT}" for names, reason in PREDICTORS.items()},
    "sklearn.manifold ClassicalMDS Isomap LocallyLinearEmbedding MDS SpectralEmbedding TSNE": (
        "it places the training records themselves. Use PCA or TruncatedSVD"
    ),
    "sklearn.cluster AgglomerativeClustering DBSCAN FeatureAgglomeration HDBSCAN OPTICS "
    "SpectralClustering SpectralBiclustering SpectralCoclustering": (
        "its result is one label for each training record, and no function of new ones. Use KMeans "
        "or GaussianMixture"
    ),
    "sklearn.cluster AffinityPropagation Birch BisectingKMeans MeanShift": (
        "its centers are training records, or their number or order depends on the data. Use "
        "KMeans or GaussianMixture"
    ),
    "sklearn.neighbors KNeighborsTransformer NearestNeighbors RadiusNeighborsTransformer": (
        f"{RECORDS}. {FROZEN}"
    ),
    "sklearn.decomposition KernelPCA": (f"{RECORDS}. Use PCA, after RBFSampler for a kernel"),
    "sklearn.decomposition DictionaryLearning FastICA LatentDirichletAllocation "
    "MiniBatchDictionaryLearning MiniBatchNMF MiniBatchSparsePCA NMF SparsePCA": COMPONENTS,
    "sklearn.neural_network.BernoulliRBM": COMPONENTS,
    "sklearn.neighbors.NeighborhoodComponentsAnalysis": COMPONENTS,
    "sklearn.covariance GraphicalLasso GraphicalLassoCV": (
        "which entries of its precision are 0 depends on the data. Use ShrunkCovariance"
    ),
    "sklearn.preprocessing.SplineTransformer": f"its knots are values of the records. {FROZEN}",
    "sklearn.preprocessing.TargetEncoder": f"it learns a mean for each category. {FROZEN}",
    "sklearn.kernel_approximation PolynomialCountSketch SkewedChi2Sampler": (
        "its random weights have no public form. Use RBFSampler"
    ),
    "sklearn.preprocessing.KernelCenterer": (
        "it centers kernels with the training records. Use RBFSampler and StandardScaler"
    ),
    "sklearn.impute IterativeImputer KNNImputer": (
        "it imputes from the training records, or by regressions to what it has imputed. Use "
        "SimpleImputer"
    ),
    "sklearn.feature_extraction.text CountVectorizer TfidfVectorizer": (
        "its vocabulary is taken from the records, and a word may name a person. Use "
        f"HashingVectorizer, which learns nothing. {FROZEN}"
    ),
    "sklearn.feature_extraction.DictVectorizer": (
        "its columns are taken from the records, and one may name a person. Use FeatureHasher, "
        "which learns nothing, to transform public and private records beforehand"
    ),
    "sklearn.preprocessing LabelBinarizer LabelEncoder MultiLabelBinarizer": (
        "it transforms labels, and these are public. Use it as it is, on the declared labels"
    ),
}

_regression_tree = Entry(
    refuse=f"its splits and its leaves are learned from the records. {PREDICT}", known=LEAVES
)

ENTRIES: dict[str, Entry] = {
    "sklearn.tree DecisionTreeRegressor ExtraTreeRegressor": _regression_tree,
    "sklearn.ensemble ExtraTreesRegressor RandomForestRegressor": _regression_tree,
    **{names: Entry(refuse=reason) for names, reason in REASONS.items()},
    "sklearn.ensemble StackingClassifier StackingRegressor": Entry(
        refuse=f"{MEMBERS}. {PREDICT}", passes_weights=True
    ),
    "sklearn.preprocessing.QuantileTransformer": Entry(
        refuse=f"its quantiles are many numbers. Use RobustScaler. {FROZEN}",
        passes_gaps=True,
        by_record=True,
    ),
    "sklearn.kernel_approximation.Nystroem": Entry(
        refuse=f"its landmarks are training records. {FROZEN}, or RBFSampler", by_record=True
    ),
    "sklearn.cross_decomposition.PLSSVD": Entry(
        refuse="scikit-learn keeps the means and scales of its transform in private attributes. "
        "Use PCA to transform",
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
    "sklearn.ensemble.IsolationForest": Entry(
        refuse=f"its scores are depths of leaves, and not values in them. {PREDICT}", by_record=True
    ),
    "sklearn.ensemble.RandomTreesEmbedding": Entry(
        refuse=f"its splits are learned from the records. {FROZEN}", by_record=True
    ),
}
