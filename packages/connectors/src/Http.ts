import { clientTls, derivedOfTls, faultsOfTls, shownOfTls, tlsOf } from "./ClientTls.ts"
import { connector, judgeStatus, Refusal } from "./Connector.ts"
import { forward, signedBy } from "./HttpDelivery.ts"
import { Schema } from "effect"
import { tokenAuths } from "@tidegate/outbound-auth/types/OAuth"
import { concurrency, forwarding, forwardsPath, HttpUrl, needed, pacing, patience } from "./Settings.ts"

/** Forwards requests to a URL. */
export const http = connector({
  type: "HTTP",
  name: "HTTP",
  description: "Delivers to a URL.",
  settings: {
    url: needed(
      HttpUrl(4096).annotate({
        description: "Where to; without a fragment, a user name or a password",
        examples: ["https://api.example.com/hooks"]
      }),
      "an absolute http or https URL"
    ),
    ...forwarding,
    ...pacing,
    ...concurrency,
    ...patience,
    ...clientTls
  },
  none: {
    path: Schema.Null.annotate({ message: "is for MOCK_API destinations; write it into config.url" }),
    ...derivedOfTls
  },
  check: faultsOfTls,
  shown: shownOfTls,
  auths: [
    "NO_AUTH",
    "SERVICE_SIGNATURE",
    "CUSTOM_HEADER",
    "API_KEY_QUERY",
    "HTTP_MESSAGE_SIGNATURE",
    "SIGNED_JWT",
    "AWS_SIGV4",
    ...tokenAuths
  ],
  leadsTo: ({ url }) => new URL(url).origin,
  credentials: "forward",
  carriesPath: forwardsPath,
  example: { name: "orders-api", type: "HTTP", config: { url: "https://api.example.com/hooks" } },
  open: (settings, auth) => {
    const prepare = forward(settings, auth)
    const tls = tlsOf(settings)
    return {
      kind: "http",
      prepare:
        tls === undefined
          ? prepare
          : (message, facts) => {
              const request = prepare(message, facts)
              return request instanceof Refusal ? request : { ...request, tls }
            },
      judge: judgeStatus,
      ...(settings.timeout_ms === null ? {} : { timeoutMs: settings.timeout_ms }),
      ...(auth.sign === undefined ? {} : { complete: signedBy(auth.sign) })
    }
  }
})
