import type { ConformanceRow, Failing } from "./Row.ts"

const said = (status: number, code: string, error: Failing["code"], final: boolean): Failing => ({
  status,
  body: `<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>${code}</Code><Message>no</Message><Region>eu-west-1</Region></Error>`,
  code: error,
  final
})
const rejected = (status: number, code: string): Failing => said(status, code, "AUTH_REJECTED", false)
const later = (status: number, code: string): Failing => said(status, code, "BAD_RESPONSE", false)
const never = (status: number, code: string): Failing => said(status, code, "BAD_RESPONSE", true)

const objectStore: Omit<ConformanceRow, "type" | "mock"> = {
  accepted: { status: 200, headers: { etag: '"900150983cd24fb0d6963f7d28e17f72"' } },
  failures: {
    credentials: [
      rejected(403, "AccessDenied"),
      rejected(403, "InvalidAccessKeyId"),
      rejected(403, "SignatureDoesNotMatch"),
      rejected(400, "ExpiredToken"),
      rejected(401, "Unauthorized"),
      { status: 403, code: "AUTH_REJECTED", final: false }
    ],
    tooMuch: [later(503, "SlowDown"), later(429, "TooManyRequests")],
    refused: [
      never(404, "NoSuchBucket"),
      never(400, "KeyTooLongError"),
      never(400, "EntityTooLarge"),
      never(405, "MethodNotAllowed"),
      never(301, "PermanentRedirect"),
      never(400, "AuthorizationHeaderMalformed"),
      never(501, "NotImplemented")
    ],
    trouble: [
      later(500, "InternalError"),
      later(503, "ServiceUnavailable"),
      later(400, "RequestTimeout"),
      later(400, "BadDigest"),
      later(409, "OperationAborted"),
      later(403, "RequestTimeTooSkewed"),
      later(307, "TemporaryRedirect"),
      { status: 502, body: "<html>", code: "BAD_RESPONSE", final: false }
    ]
  },
  addresses: { endpoint: ({ url }) => ({ config: { endpoint: url } }) },
  triedWith: "@aws-sdk/client-s3 and aws4fetch beside it; OpenStack Swift where it is installed"
}

export const objectStoreR: ConformanceRow = {
  ...objectStore,
  type: "OBJECT_STORE_R",
  mock: (origin) => ({ config: { endpoint: origin } })
}

export const objectStoreS: ConformanceRow = {
  ...objectStore,
  type: "OBJECT_STORE_S",
  mock: (origin) => ({ config: { endpoint: origin, force_path_style: true } })
}
