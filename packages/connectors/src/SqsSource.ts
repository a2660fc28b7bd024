import { signingKeyOf } from "@tidegate/outbound-auth/AwsSignature"
import { faultsOfQueue, leadsToQueue, queueSettings, regionOf } from "./AwsSqs.ts"
import { passing } from "./BrokerSession.ts"
import { brokerSource } from "./BrokerSource.ts"
import { wholeNumber } from "./Server.ts"
import { setting } from "./Settings.ts"

const notVisibility = "must be a whole number from 10 to 43200"
/** Seconds that the first call may take: its answer comes at once. */
const connectTimeout = 30
const nobody = { accessKeyId: "", secretAccessKey: "" }

const notIn = passing("the service does not let the source in")
const noQueue = passing("there is no such queue")
const noRights = passing("the key may not receive and delete messages of this queue")

/** Messages of a queue of Amazon SQS. */
export const sqsSource = brokerSource({
  type: "AWS_SQS",
  name: "Amazon SQS",
  description: "A source whose requests are the messages of a queue of Amazon SQS.",
  settings: {
    ...queueSettings,
    visibility_timeout: setting(
      wholeNumber(10, 43_200, notVisibility).annotate({
        description: "Seconds, after which the queue delivers a message again that was not deleted"
      }),
      60,
      notVisibility
    )
  },
  check: faultsOfQueue,
  auths: ["AWS_ACCESS_KEY"],
  leadsTo: leadsToQueue,
  protocol: "sqs",
  place: ({ queue_url, region, visibility_timeout }, auth) => ({
    queueUrl: queue_url,
    region: regionOf({ queue_url, region }),
    key: signingKeyOf(auth) ?? nobody,
    visibilityTimeout: visibility_timeout,
    connectTimeout
  }),
  meanings: {
    AccessDenied: noRights,
    AccessDeniedException: noRights,
    InvalidClientTokenId: notIn,
    UnrecognizedClientException: notIn,
    InvalidSecurity: notIn,
    SignatureDoesNotMatch: notIn,
    InvalidSignatureException: notIn,
    ExpiredToken: notIn,
    ExpiredTokenException: notIn,
    QueueDoesNotExist: noQueue,
    NonExistentQueue: noQueue,
    "AWS.SimpleQueueService.NonExistentQueue": noQueue
  },
  example: {
    subscription: { queue_url: "https://sqs.eu-central-1.amazonaws.com/123456789012/orders" },
    auth: { access_key_id: "AKIA0000000000000000", secret_access_key: "secret" }
  }
})
