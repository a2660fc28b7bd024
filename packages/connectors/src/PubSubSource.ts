import { passing } from "./BrokerSession.ts"
import { brokerSource, prefetching } from "./BrokerSource.ts"
import { leadsToPubSub, projectId, pubSubApi, pubSubEndpoint, PubSubName, pubSubScope } from "./GcpPubSub.ts"
import { needed } from "./Settings.ts"

/** Seconds that the first call may take, including the call for a token. The service answers the first call at once. */
const connectTimeout = 40

const notIn = passing("the service does not let the source in")
const noRights = passing("the service account may not consume messages of this subscription")
const noSubscription = passing("there is no such subscription")
const tooMany = passing("the service takes no more calls now")
const unavailable = passing("the service cannot answer now")

/** Messages of a subscription of Google Cloud Pub/Sub. */
export const pubSubSource = brokerSource({
  type: "GCP_PUBSUB",
  name: "Google Cloud Pub/Sub",
  description: "A source whose requests are the messages of a subscription of Google Cloud Pub/Sub.",
  settings: {
    project_id: projectId,
    subscription_id: needed(
      PubSubName("subscription", {
        description: "The subscription, which is of the kind pull. The gateway makes none",
        examples: ["orders-tidegate"]
      }),
      "the name of the subscription"
    ),
    endpoint: pubSubEndpoint,
    prefetch: prefetching("Messages that are pulled before the first of them is stored")
  },
  auths: ["SERVICE_ACCOUNT", null],
  scope: pubSubScope,
  leadsTo: leadsToPubSub,
  protocol: "pubsub",
  place: ({ endpoint, prefetch, project_id, subscription_id }, _auth, { bearer, origins }) => ({
    origin: endpoint === null ? origins(pubSubApi) : new URL(endpoint).origin,
    projectId: project_id,
    subscriptionId: subscription_id,
    bearer,
    prefetch,
    connectTimeout
  }),
  meanings: {
    UNAUTHENTICATED: notIn,
    PERMISSION_DENIED: noRights,
    NOT_FOUND: noSubscription,
    FAILED_PRECONDITION: passing("the subscription is not one from which messages can be pulled"),
    RESOURCE_EXHAUSTED: tooMany,
    UNAVAILABLE: unavailable,
    INTERNAL: unavailable,
    UNKNOWN: unavailable,
    ABORTED: unavailable,
    CANCELLED: unavailable,
    DEADLINE_EXCEEDED: unavailable,
    // Such an answer does not come from the service itself, but for example from a load balancer in front of it.
    "HTTP 401": notIn,
    "HTTP 429": tooMany,
    ...Object.fromEntries([500, 502, 503, 504].map((status) => [`HTTP ${status}`, unavailable]))
  },
  // The example is for an emulator, because it cannot contain a valid key of a service account.
  example: {
    subscription: {
      project_id: "my-shop",
      subscription_id: "orders-tidegate",
      endpoint: "http://pubsub-emulator.example.com:8085"
    },
    auth: {}
  }
})
