"""Kubernetes' feature gates as of 1.36: which names exist, which are on, and which cannot be changed."""

from collections.abc import Mapping
from typing import Final


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_ALPHA: Final = _names(
    """
    APIServingWithRoutine AllowUnsafeMalformedObjectDeletion CBORServingAndStorage
    CPUManagerPolicyAlphaOptions CRIListStreaming CSIVolumeHealth
    CloudControllerManagerWatchBasedRoutesReconciliation CloudControllerManagerWebhook ContainerStopSignals
    CrossNamespaceVolumeDataSource DRAListTypeAttributes DRANodeAllocatableResources DRAResourcePoolStatus
    DRAWorkloadResourceClaims EventedPLEG GangScheduling GenericWorkload HPAScaleToZero
    ImageVolumeWithDigest InPlacePodVerticalScalingExclusiveCPUs InPlacePodVerticalScalingExclusiveMemory
    KubeletInUserNamespace LoggingAlphaOptions ManifestBasedAdmissionControlConfig MemoryQoS
    MutablePVNodeAffinity PersistentVolumeClaimUnusedSinceTime PodAndContainerStatsFromCRI
    PodLevelResourceManagers PodLogsQuerySplitStreams PodsAPI QOSReserved ReduceDefaultCrashLoopBackOffDecay
    RuntimeClassInImageCriAPI ShardedListAndWatch StorageCapacityScoring StorageVersionAPI
    TaintTolerationComparisonOperators TopologyAwareWorkloadScheduling TopologyManagerPolicyAlphaOptions
    UserNamespacesHostNetworkSupport VolumeLimitScaling WindowsCPUAndMemoryAffinity WorkloadAwarePreemption
    WorkloadWithJob
    """
)
_BETA_ON: Final = _names(
    """
    APIResponseCompression APIServerIdentity AllowParsingUserUIDFromCertAuth AtomicFIFO
    AuthorizePodWebsocketUpgradeCreatePermission CPUManagerPolicyBetaOptions CRDObservedGenerationTracking
    ClearingNominatedNodeNameAfterBinding ComponentFlagz ComponentStatusz ConstrainedImpersonation
    ContainerCheckpoint ContainerRestartRules ContextualLogging DRAConsumableCapacity
    DRADeviceBindingConditions DRADeviceTaints DRAExtendedResource DRAPartitionableDevices
    DRAResourceClaimDeviceStatus DRAResourceClaimGranularStatusAuthorization DRASchedulerFilterTimeout
    DeclarativeValidationBeta DeploymentReplicaSetTerminatingReplicas DetectCacheInconsistency EnvFiles
    ExtendWebSocketsToKubelet GracefulNodeShutdown GracefulNodeShutdownBasedOnPodPriority
    HPAConfigurableTolerance HostnameOverride InOrderInformers InPlacePodLevelResourcesVerticalScaling
    InPlacePodVerticalScalingInitContainers KubeletCrashLoopBackOffMax KubeletEnsureSecretPulledImages
    KubeletSeparateDiskGC KubeletServiceAccountTokenForCredentialProviders ListFromCacheSnapshot
    LoggingBetaOptions MatchLabelKeysInPodTopologySpread MatchLabelKeysInPodTopologySpreadSelectorMerge
    MutablePodResourcesForSuspendedJobs MutableSchedulingDirectivesForSuspendedJobs NodeDeclaredFeatures
    NominatedNodeNameForExpectation OpenAPIEnums OpportunisticBatching PLEGOnDemandRelist PodDeletionCost
    PodLevelResources PodReadyToStartContainersCondition PodTopologyLabelsAdmission PortForwardWebsockets
    PreventStaticPodAPIReferences RelaxedServiceNameValidation ReloadKubeletClientCAFile
    ReloadKubeletServerCertificateFile RemoteRequestHeaderUID ResourceHealthStatus
    ResourceHealthStatusMessage RestartAllContainersOnContainerExits RotateKubeletServerCertificate
    SchedulerAsyncPreemption SchedulerPopFromBackoffQ ServiceAccountNodeAudienceRestriction
    SizeBasedListCostEstimate StaleControllerConsistencyDaemonSet StaleControllerConsistencyJob
    StaleControllerConsistencyReplicaSet StaleControllerConsistencyStatefulSet
    StatefulSetSemanticRevisionComparison StorageVersionHash StrictIPCIDRValidation
    StructuredAuthenticationConfigurationEgressSelector StructuredAuthenticationConfigurationJWKSMetrics
    TokenRequestServiceAccountUIDValidation TopologyManagerPolicyBetaOptions
    TranslateStreamCloseWebsocketRequests UnauthenticatedHTTP2DOSMitigation
    UnknownVersionInteroperabilityProxy UnlockWhileProcessingFIFO WatchCacheInitializationPostStartHook
    WatchList WatchListClient WindowsGracefulNodeShutdown
    """
)
_BETA_OFF: Final = _names(
    """
    ClientsAllowCBOR ClientsPreferCBOR ClusterTrustBundle ClusterTrustBundleProjection
    ConcurrentWatchObjectDecode CoordinatedLeaderElection DRADeviceTaintRules InformerResourceVersion
    LocalStorageCapacityIsolationFSQuotaMonitoring MaxUnavailableStatefulSet PodCertificateRequest
    SELinuxMount SchedulerAsyncAPICalls StorageVersionMigrator
    """
)
_STABLE_ON: Final = _names(
    """
    AllowServiceExternalIPs CustomCPUCFSQuotaPeriod DRAPrioritizedList DisableCPUQuotaWithExclusiveCPUs
    KubeletPodResourcesListUseActivePods MutatingAdmissionPolicy ServiceCIDRStatusFieldWiping
    StorageNamespaceIndex
    """
)
_STABLE_OFF: Final = _names(
    """
    AllAlpha AllBeta AllowDNSOnlyNodeCSR AllowInsecureKubeletCertificateSigningRequests
    ChangeContainerStatusOnKubeletRestart DeclarativeValidationTakeover KMSv1
    KubeletRegistrationGetOnExistsOnly WindowsHostNetwork
    """
)
_LOCKED_ON: Final = _names(
    """
    AggregatedDiscoveryRemoveBetaType AnonymousAuthConfigurableEndpoints AnyVolumeDataSource
    AuthorizeNodeWithSelectors AuthorizeWithSelectors BtreeWatchCache CPUManagerPolicyOptions
    CRDValidationRatcheting CSIServiceAccountTokenSecrets ConsistentListFromCache
    CustomResourceFieldSelectors DRAAdminAccess DeclarativeValidation DisableAllocatorDualWrite
    DisableNodeKubeProxyVersion DynamicResourceAllocation ExecProbeTimeout ExternalServiceAccountTokenSigner
    HonorPVReclaimPolicy ImageMaximumGCAge ImageVolume InPlacePodVerticalScaling JobBackoffLimitPerIndex
    JobManagedBy JobPodReplacementPolicy JobSuccessPolicy KubeletCgroupDriverFromCRI KubeletFineGrainedAuthz
    KubeletPSI KubeletPodResourcesDynamicResources KubeletPodResourcesGet KubeletTracing
    MatchLabelKeysInPodAffinity MultiCIDRServiceAllocator MutableCSINodeAllocatableCount NFTablesProxyMode
    NodeInclusionPolicyInPodTopologySpread NodeLogQuery NodeSwap OrderedNamespaceDeletion
    PodLifecycleSleepAction PodLifecycleSleepActionAllowZero PodObservedGenerationTracking
    PodSchedulingReadiness PreferSameTrafficDistribution ProcMountType RecoverVolumeExpansionFailure
    RecursiveReadOnlyMounts RelaxedDNSSearchValidation RelaxedEnvironmentVariableValidation
    ResilientWatchCacheInitialization RetryGenerateName SELinuxChangePolicy SELinuxMountReadWriteOncePod
    SchedulerQueueingHints SeparateTaintEvictionController ServiceAccountTokenJTI
    ServiceAccountTokenNodeBinding ServiceAccountTokenNodeBindingValidation ServiceAccountTokenPodNodeInfo
    ServiceTrafficDistribution SidecarContainers StreamingCollectionEncodingToJSON
    StreamingCollectionEncodingToProtobuf StructuredAuthenticationConfiguration
    StructuredAuthorizationConfiguration SupplementalGroupsPolicy SystemdWatchdog TopologyAwareHints
    TopologyManagerPolicyOptions UserNamespacesSupport VolumeAttributesClass
    WatchFromStorageWithoutResourceVersion WinDSR WinOverlay
    """
)
_LOCKED_OFF: Final = _names(
    """
    AllowOverwriteTerminationGracePeriodSeconds GitRepoVolumeDriver SeparateCacheWatchRPC
    """
)

KNOWN_GATES: Final = _ALPHA | _BETA_ON | _BETA_OFF | _STABLE_ON | _STABLE_OFF | _LOCKED_ON | _LOCKED_OFF


def enabled(gates: Mapping[str, bool], name: str) -> bool:
    """Whether a known gate is on, given what a configuration sets. Raises KeyError for an unknown name."""
    if name in gates:
        return gates[name]
    if name in _ALPHA:
        return gates.get("AllAlpha", False)
    if name in _BETA_ON or name in _BETA_OFF:
        return gates.get("AllBeta", name in _BETA_ON)
    if name not in KNOWN_GATES:
        raise KeyError(name)
    return name in _STABLE_ON or name in _LOCKED_ON


def locked_value(name: str) -> bool | None:
    """The only value a gate can have, or None where it can be set."""
    return True if name in _LOCKED_ON else False if name in _LOCKED_OFF else None
