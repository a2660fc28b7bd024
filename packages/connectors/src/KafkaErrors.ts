/** The names of the Kafka error codes that a publisher or a consumer can get, and whether Kafka's own clients repeat the call. */

interface KafkaError {
  readonly name: string
  readonly isRetriable: boolean
}

const retriable = (name: string): KafkaError => ({ name, isRetriable: true })
const final = (name: string): KafkaError => ({ name, isRetriable: false })

const errors: ReadonlyMap<number, KafkaError> = new Map([
  [-1, final("UNKNOWN_SERVER_ERROR")],
  [1, final("OFFSET_OUT_OF_RANGE")],
  [2, retriable("CORRUPT_MESSAGE")],
  [3, retriable("UNKNOWN_TOPIC_OR_PARTITION")],
  [5, retriable("LEADER_NOT_AVAILABLE")],
  [6, retriable("NOT_LEADER_OR_FOLLOWER")],
  [7, retriable("REQUEST_TIMED_OUT")],
  [8, retriable("BROKER_NOT_AVAILABLE")],
  [9, retriable("REPLICA_NOT_AVAILABLE")],
  [10, final("MESSAGE_TOO_LARGE")],
  [12, final("OFFSET_METADATA_TOO_LARGE")],
  [13, retriable("NETWORK_EXCEPTION")],
  [14, retriable("COORDINATOR_LOAD_IN_PROGRESS")],
  [15, retriable("COORDINATOR_NOT_AVAILABLE")],
  [16, retriable("NOT_COORDINATOR")],
  [17, final("INVALID_TOPIC_EXCEPTION")],
  [18, final("RECORD_LIST_TOO_LARGE")],
  [19, retriable("NOT_ENOUGH_REPLICAS")],
  [20, retriable("NOT_ENOUGH_REPLICAS_AFTER_APPEND")],
  [21, final("INVALID_REQUIRED_ACKS")],
  [22, final("ILLEGAL_GENERATION")],
  [23, final("INCONSISTENT_GROUP_PROTOCOL")],
  [24, final("INVALID_GROUP_ID")],
  [25, final("UNKNOWN_MEMBER_ID")],
  [26, final("INVALID_SESSION_TIMEOUT")],
  [27, final("REBALANCE_IN_PROGRESS")],
  [29, final("TOPIC_AUTHORIZATION_FAILED")],
  [30, final("GROUP_AUTHORIZATION_FAILED")],
  [31, final("CLUSTER_AUTHORIZATION_FAILED")],
  [32, final("INVALID_TIMESTAMP")],
  [33, final("UNSUPPORTED_SASL_MECHANISM")],
  [34, final("ILLEGAL_SASL_STATE")],
  [35, final("UNSUPPORTED_VERSION")],
  [41, retriable("NOT_CONTROLLER")],
  [42, final("INVALID_REQUEST")],
  [43, final("UNSUPPORTED_FOR_MESSAGE_FORMAT")],
  [44, final("POLICY_VIOLATION")],
  [45, final("OUT_OF_ORDER_SEQUENCE_NUMBER")],
  [46, final("DUPLICATE_SEQUENCE_NUMBER")],
  [47, final("INVALID_PRODUCER_EPOCH")],
  [49, final("INVALID_PRODUCER_ID_MAPPING")],
  [51, retriable("CONCURRENT_TRANSACTIONS")],
  [53, final("TRANSACTIONAL_ID_AUTHORIZATION_FAILED")],
  [54, final("SECURITY_DISABLED")],
  [56, retriable("KAFKA_STORAGE_ERROR")],
  [58, final("SASL_AUTHENTICATION_FAILED")],
  [59, final("UNKNOWN_PRODUCER_ID")],
  [72, retriable("LISTENER_NOT_FOUND")],
  [74, retriable("FENCED_LEADER_EPOCH")],
  [75, retriable("UNKNOWN_LEADER_EPOCH")],
  [76, final("UNSUPPORTED_COMPRESSION_TYPE")],
  [78, retriable("OFFSET_NOT_AVAILABLE")],
  [79, final("MEMBER_ID_REQUIRED")],
  [80, retriable("PREFERRED_LEADER_NOT_AVAILABLE")],
  [81, final("GROUP_MAX_SIZE_REACHED")],
  [87, final("INVALID_RECORD")],
  [89, retriable("THROTTLING_QUOTA_EXCEEDED")],
  [100, retriable("UNKNOWN_TOPIC_ID")],
  [103, retriable("INCONSISTENT_TOPIC_ID")]
])

const names: ReadonlyMap<string, KafkaError> = new Map([...errors.values()].map((error) => [error.name, error]))

export const kafkaErrors: ReadonlyArray<KafkaError> = [...errors.values()]

export const isRetriable = (name: string): boolean => names.get(name)?.isRetriable === true

/** A code that is not known may be new, so the call is not repeated. */
export const kafkaError = (code: number): KafkaError => errors.get(code) ?? final(`ERROR_${code}`)
