import { of, row, type Section, tests } from "./Facts.ts"

const shares_ = tests("test/contract/Shares.test.ts")
const stored = tests("packages/storage/test/Shares.test.ts")
const redaction = tests("packages/redaction/test/Redaction.test.ts")
const ingress = tests("test/contract/Ingress.test.ts")

const opened = shares_("A share shows the request without its secrets to everyone who has the link")
const lasting = shares_("A share lasts as long as requested within limits")

const found = shares_("The shares of a request can be listed and revoked together")

export const shares: Section = {
  title: "Request shares",
  endpoints: [
    row("POST /requests/{id}/share; GET /shares/request/{token}", opened),
    row("DELETE /requests/{id}/share/{share}", shares_("A share ends when it is revoked")),
    row("GET /shares; DELETE /requests/{id}/share", found)
  ],
  fields: {
    ShareWrite: [
      of("title label redact_keys", opened),
      of("expires_in_seconds ttl_seconds ttl expires_at", lasting),
      of("include_body", shares_("A share omits the body on request, and when a large body cannot be redacted"))
    ],
    Share: [
      of(
        "access_count last_accessed_at",
        stored("A share shows the redacted request, counts its readers and hides its token")
      ),
      of("revoked_at", stored("A revoked share ends and forgets its content")),
      of("expires_at", lasting)
    ],
    ListedShare: [
      of("id request_id title status revoked_at access_count", found),
      of(
        "expires_at last_accessed_at",
        stored("All shares of a request can be revoked, and stay listed until they are forgotten")
      )
    ],
    SharedRequest: [
      of("body body_truncated", shares_("A share omits the body on request, and when a large body cannot be redacted"))
    ],
    PublicShare: [of("*", opened)]
  },
  states: [
    row("expired: 410", stored("A share expires at its time, reports that for a while, and is then deleted")),
    row("revoked: 410", shares_("A share ends when it is revoked")),
    row(
      "malformed or unknown token: 404",
      shares_("An unknown share is answered with 404, whether its token is well-formed or not")
    ),
    row("secrets are redacted before the snapshot is stored", opened),
    row("common secrets, in every kind of body", redaction("A planted secret is not shown (%s)"))
  ],
  limits: [row("TTL 7 days by default; TTL 30 days at most", lasting)]
}

const bin = tests("test/contract/PublicBins.test.ts")
const binStored = tests("packages/storage/test/Bins.test.ts")

const claimed = bin("A claimed bin is a source of the team with its URL and its requests")

export const bins: Section = {
  title: "Public request bins",
  endpoints: [
    row("POST /public-bins", bin("A public bin is created without a credential and accepts requests")),
    row(
      "GET /public-bins/{id}",
      bin("A public bin can be read only with its token, in its own header or as a bearer token")
    ),
    row("POST /public-bins/{id}/claim", claimed)
  ],
  fields: { NewPublicBin: [], PublicBin: [], ClaimedBin: [] },
  states: [
    row(
      "one hour after its creation, unless claimed: 410",
      bin("An expired public bin answers senders and readers with 410")
    ),
    row("claim: it moves to the caller's team as a source, with its requests", claimed),
    row(
      "claim needs the read token and a team",
      bin("The claim of a bin needs a member of a team and the bin's token")
    ),
    row("the read token is told once", binStored("A public bin opens with its token, and the token is not stored"))
  ],
  limits: [
    row(
      "lifetime one hour unless claimed",
      binStored("A public bin ends exactly after an hour and is forgotten a day later")
    ),
    row("creation is rate limited", bin("The number of public bins created from one address in an hour is limited")),
    row(
      "sixty requests a minute; five hundred in all",
      bin("A public bin accepts sixty requests a minute and five hundred in total")
    )
  ]
}

export const ingressUrls: Section = {
  title: "Ingress URLs",
  endpoints: [
    row(
      "GET,PUT,POST,PATCH,DELETE /e/{source_id}",
      ingress("A source can accept GET and HEAD, and HEAD is answered without a body")
    )
  ],
  fields: {}
}

const attended = tests("packages/api/test/streams/Attended.test.ts")
const stream = tests("test/contract/BinStream.test.ts")
const told = stream("A stream sends every stored request once, as the list shows it, accepted or rejected")

const tunnel = tests("test/contract/Tunnel.test.ts")
const delivered = tunnel(
  "A tunnel delivery is the request of an HTTP destination, and its answer is the attempt's result"
)
const admitted = tunnel("A tunnel accepts keys and sessions, in headers and in subprotocols")

export const streams: Section = {
  title: "Streams",
  endpoints: [row("GET /bins/{id}/stream", told), row("GET /connect", delivered)],
  fields: {
    StreamFrame: [of("type bin_id request", told)],
    CapturedRequest: [],
    TunnelFrame: [
      of("type cli_id destination_id heartbeat_seconds max_in_flight", admitted),
      of("job_id timeout_ms request.body request.body_base64", tunnel("A tunnel carries any bytes in both directions")),
      of("request", delivered)
    ]
  },
  states: [
    row("a plain request: 426", stream("A call without an upgrade is answered with 426, with or without a credential")),
    row(
      "credentials as Sec-WebSocket-Protocol values",
      stream("The handshake answers with the protocol or else the team, and never with the token")
    ),
    row("who may not is told by the close code", stream("The close code of a refused stream states the reason")),
    row("whose right has ended is told by the close code", attended("Event stream ends when ${what}")),
    row("a reader that is silent is let go", attended("Event stream ends when its reader answers no pings")),
    row(
      "tunnel:connect, a team's key or session: 4401, 4403, 4404",
      tunnel("The close code of a refused tunnel states the reason")
    ),
    row(
      "a newer session takes over: 4409",
      tunnel("A newer tunnel session takes over and receives what the older one has not answered")
    ),
    row(
      "the destination is deleted: 4404",
      tunnel("A tunnel session ends with 4404 when its destination is deleted or changes its type")
    ),
    row("binary bodies in base64", tunnel("A tunnel carries any bytes in both directions")),
    row(
      "a failure of the local program: 502 with an error, CLI",
      tunnel("A tunnel delivery fails by its answer and is retried by the retry rule")
    ),
    row(
      "no session: QUEUED",
      tunnel("Events wait for a tunnel client and are then delivered in the order of their arrival")
    ),
    row(
      "no session for two minutes: CLI_UNAVAILABLE",
      tests("packages/entities/test/Tunnel.test.ts")(
        "An event fails if no client connects for two minutes, and its retry waits as long"
      )
    ),
    row(
      "a client that goes, a runner or an edge that is killed: sent again",
      tests("test/cluster/tunnel.test.ts")(
        "A tunnel loses no event while runners and the edge that holds it are killed"
      )
    ),
    row(
      "a reader that does not keep up is dropped",
      stream("A reader that does not read is disconnected and does not delay others")
    )
  ],
  limits: [
    row("50 deliveries at once", tunnel("A tunnel client holds at most fifty deliveries at once")),
    row("few streams of one source, and of one address", stream("The number of readers of a source is limited"))
  ]
}
