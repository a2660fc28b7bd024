import type { Answered, ConformanceRow, Failing } from "./Row.ts"

type Error = (status: number, code: string, more?: object) => Answered

const json =
  (service: string): Error =>
  (status, code, more = {}) => ({
    status,
    headers: { "content-type": "application/x-amz-json-1.1" },
    body: JSON.stringify({ __type: `com.amazonaws.${service}#${code}`, message: "no", ...more })
  })

const xml: Error = (status, code) => ({
  status,
  headers: { "content-type": "text/xml" },
  body: `<ErrorResponse><Error><Type>Sender</Type><Code>${code}</Code><Message>no</Message></Error></ErrorResponse>`
})

/** What all of these services answer. `own`: the codes of one of them, as final or not. */
const failuresOf = (
  error: Error,
  own: { readonly final: ReadonlyArray<string>; readonly again: ReadonlyArray<string> }
): NonNullable<ConformanceRow["failures"]> => {
  const rejected = (status: number, code: string): Failing => ({
    ...error(status, code),
    code: "AUTH_REJECTED",
    final: false
  })
  const later = (status: number, code: string): Failing => ({
    ...error(status, code),
    code: "BAD_RESPONSE",
    final: false
  })
  const throttled = (status: number, code: string): Failing => ({ ...later(status, code), retryAfter: 1 })
  return {
    credentials: [
      rejected(403, "InvalidClientTokenId"),
      rejected(400, "UnrecognizedClientException"),
      rejected(403, "SignatureDoesNotMatch"),
      rejected(400, "AccessDeniedException"),
      rejected(403, "ExpiredToken"),
      { status: 403, code: "AUTH_REJECTED", final: false }
    ],
    tooMuch: [
      throttled(400, "ThrottlingException"),
      throttled(429, "TooManyRequestsException"),
      { ...later(429, "Throttled"), headers: { "retry-after": "7" } }
    ],
    refused: own.final.map((code): Failing => ({ ...error(400, code), code: "BAD_RESPONSE", final: true })),
    trouble: [
      ...own.again.map((code) => later(400, code)),
      later(403, "RequestExpired"),
      later(500, "InternalFailure"),
      later(503, "ServiceUnavailable"),
      { status: 502, body: "<html>", code: "BAD_RESPONSE", final: false }
    ]
  }
}

const endpoint: Pick<ConformanceRow, "mock" | "addresses"> = {
  mock: (origin) => ({ config: { endpoint: origin } }),
  addresses: { endpoint: ({ url }) => ({ config: { endpoint: url } }) }
}

const triedWith = "moto where it is installed, and requests that the AWS SDK made"

const queue = "/000000000000/orders"

export const awsSqs: ConformanceRow = {
  type: "AWS_SQS",
  mock: (origin) => ({ config: { queue_url: `${origin}${queue}`, region: "eu-central-1" } }),
  accepted: { status: 200, body: '{"MessageId":"a1","MD5OfMessageBody":"0"}' },
  failures: failuresOf(json("sqs"), {
    final: ["InvalidMessageContents", "UnsupportedOperation", "InvalidParameterValueException", "InvalidAddress"],
    again: ["QueueDoesNotExist", "AWS.SimpleQueueService.NonExistentQueue", "KmsDisabled"]
  }),
  addresses: {
    queue_url: ({ url }) => ({ config: { queue_url: `${url.replace(/\/$/, "")}${queue}`, region: "eu-central-1" } })
  },
  beside: {
    message_deduplication_id: {
      queue_url: "https://sqs.eu-central-1.amazonaws.com/123456789012/orders.fifo"
    }
  },
  triedWith
}

export const awsSns: ConformanceRow = {
  type: "AWS_SNS",
  ...endpoint,
  accepted: {
    status: 200,
    body: "<PublishResponse><PublishResult><MessageId>a-1</MessageId></PublishResult></PublishResponse>"
  },
  failures: failuresOf(xml, {
    final: ["InvalidParameter", "InvalidParameterValue", "ValidationException", "EndpointDisabled"],
    again: ["NotFound", "KMSDisabled", "KMSNotFound"]
  }),
  beside: {
    message_deduplication_id: { topic_arn: "arn:aws:sns:eu-central-1:123456789012:orders.fifo" }
  },
  triedWith
}

const putEvents = (code: string): Answered => ({
  status: 200,
  body: JSON.stringify({ FailedEntryCount: 1, Entries: [{ ErrorCode: code, ErrorMessage: "no" }] })
})

const neverPut = (code: string): Failing => ({ ...putEvents(code), code: "BAD_RESPONSE", final: true })

const ofEvents = failuresOf(json("events"), { final: ["ValidationException"], again: [] })

export const awsEventBridge: ConformanceRow = {
  type: "AWS_EVENTBRIDGE",
  ...endpoint,
  accepted: { status: 200, body: '{"FailedEntryCount":0,"Entries":[{"EventId":"e-1"}]}' },
  failures: {
    credentials: [
      ...ofEvents.credentials,
      { ...putEvents("NotAuthorizedForSourceException"), code: "AUTH_REJECTED", final: false }
    ],
    tooMuch: [
      ...ofEvents.tooMuch,
      { ...putEvents("ThrottlingException"), code: "BAD_RESPONSE", final: false, retryAfter: 1 }
    ],
    refused: [
      ...ofEvents.refused,
      ...["MalformedDetail", "InvalidArgument", "InvalidAccountIdException", "RedactionFailure", "NewCode"].map(
        neverPut
      )
    ],
    trouble: [...ofEvents.trouble, { ...putEvents("InternalFailure"), code: "BAD_RESPONSE", final: false }]
  },
  notReached: { source: "a text that rules compare" },
  triedWith
}

const ofRecords = failuresOf(json("kinesis"), {
  final: ["InvalidArgumentException", "ValidationException"],
  again: ["ResourceNotFoundException", "KMSDisabledException", "KMSInvalidStateException"]
})

export const awsKinesis: ConformanceRow = {
  type: "AWS_KINESIS",
  ...endpoint,
  accepted: { status: 200, body: '{"ShardId":"shardId-000000000000","SequenceNumber":"49"}' },
  failures: {
    ...ofRecords,
    tooMuch: [
      ...ofRecords.tooMuch,
      {
        ...json("kinesis")(400, "ProvisionedThroughputExceededException"),
        code: "BAD_RESPONSE",
        final: false,
        retryAfter: 1
      }
    ]
  },
  triedWith
}
