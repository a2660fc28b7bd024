import { of, row, type Section, tests } from "./Facts.ts"

const shares_ = tests("test/contract/Shares.test.ts")
const stored = tests("packages/storage/test/Shares.test.ts")
const redaction = tests("packages/redaction/test/Redaction.test.ts")
const ingress = tests("test/contract/Ingress.test.ts")

const opened = shares_("shows the request without its secrets to whoever has the link")
const lasting = shares_("lasts as long as it is told, within bounds")

const found = shares_("is found by its request, and ended with all others of it, by who has no id")

export const shares: Section = {
  title: "Request shares",
  endpoints: [
    row("POST /requests/{id}/share; GET /shares/request/{token}", opened),
    row("DELETE /requests/{id}/share/{share}", shares_("ends when it is revoked")),
    row("GET /shares; DELETE /requests/{id}/share", found)
  ],
  fields: {
    ShareWrite: [
      of("title label redact_keys", opened),
      of("expires_in_seconds ttl_seconds ttl expires_at", lasting),
      of("include_body", shares_("has no body where none is asked for, and none that nobody can look into"))
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
      of("body body_truncated", shares_("has no body where none is asked for, and none that nobody can look into"))
    ],
    PublicShare: [of("*", opened)]
  },
  states: [
    row("expired: 410", stored("A share expires at its time, reports that for a while, and is then deleted")),
    row("revoked: 410", shares_("ends when it is revoked")),
    row("malformed or unknown token: 404", shares_("that there is not is 404, well-formed or not")),
    row("secrets are redacted before the snapshot is stored", opened),
    row("common secrets, in every kind of body", redaction("A planted secret is not shown (%s)"))
  ],
  limits: [row("TTL 7 days by default; TTL 30 days at most", lasting)]
}

const bin = tests("test/contract/PublicBins.test.ts")
const binStored = tests("packages/storage/test/Bins.test.ts")

const claimed = bin("is a source of the team, with its URL and its requests")

export const bins: Section = {
  title: "Public request bins",
  endpoints: [
    row("POST /public-bins", bin("is made without a credential, and takes what comes")),
    row("GET /public-bins/{id}", bin("is read by its token alone, in a header of its own or as a bearer")),
    row("POST /public-bins/{id}/claim", claimed)
  ],
  fields: { NewPublicBin: [], PublicBin: [], ClaimedBin: [] },
  states: [
    row("one hour after its creation, unless claimed: 410", bin("ends after its hour: 410 to senders and readers")),
    row("claim: it moves to the caller's team as a source, with its requests", claimed),
    row("claim needs the read token and a team", bin("needs somebody with a team, and the token")),
    row("the read token is told once", binStored("A public bin opens with its token, and the token is not stored"))
  ],
  limits: [
    row(
      "lifetime one hour unless claimed",
      binStored("A public bin ends exactly after an hour and is forgotten a day later")
    ),
    row("creation is rate limited", bin("is made so often an hour from one address")),
    row("sixty requests a minute; five hundred in all", bin("takes sixty requests a minute, and five hundred in all"))
  ]
}

export const ingressUrls: Section = {
  title: "Ingress URLs",
  endpoints: [
    row(
      "GET,PUT,POST,PATCH,DELETE /e/{source_id}",
      ingress("GET and HEAD when the source takes them; HEAD is answered without a body")
    )
  ],
  fields: {}
}

const attended = tests("packages/api/test/streams/Attended.test.ts")
const stream = tests("test/contract/BinStream.test.ts")
const told = stream("tells every request that is stored, accepted or rejected, once and as the list shows it")

const tunnel = tests("test/contract/Tunnel.test.ts")
const delivered = tunnel("is the request as HTTP destinations are sent it, and its answer is the attempt's")
const admitted = tunnel("is let in by keys and by sessions, by headers and by subprotocols")

export const streams: Section = {
  title: "Streams",
  endpoints: [row("GET /bins/{id}/stream", told), row("GET /connect", delivered)],
  fields: {
    StreamFrame: [of("type bin_id request", told)],
    CapturedRequest: [],
    TunnelFrame: [
      of("type cli_id destination_id heartbeat_seconds max_in_flight", admitted),
      of("job_id timeout_ms request.body request.body_base64", tunnel("carries any bytes both ways")),
      of("request", delivered)
    ]
  },
  states: [
    row("a plain request: 426", stream("that is none is answered 426, with or without a credential")),
    row(
      "credentials as Sec-WebSocket-Protocol values",
      stream("is answered with the protocol, or with the team where that is not offered, and never with the token")
    ),
    row("who may not is told by the close code", stream("is told by the code of its end why it is not let in")),
    row("whose right has ended is told by the close code", attended("Event stream ends when ${what}")),
    row("a reader that is silent is let go", attended("Event stream ends when its reader answers no pings")),
    row(
      "tunnel:connect, a team's key or session: 4401, 4403, 4404",
      tunnel("is told by the code of its end why it is not let in")
    ),
    row(
      "a newer session takes over: 4409",
      tunnel("is taken over by a newer one, which is sent what the older one has not answered")
    ),
    row(
      "the destination is deleted: 4404",
      tunnel("ends with 4404 when its destination is deleted, or is none any more")
    ),
    row("binary bodies in base64", tunnel("carries any bytes both ways")),
    row(
      "a failure of the local program: 502 with an error, CLI",
      tunnel("fails as its answer says, and is tried again by the retry rule")
    ),
    row("no session: QUEUED", tunnel("events wait, and are delivered in the order of their arrival when one comes")),
    row(
      "no session for two minutes: CLI_UNAVAILABLE",
      tests("packages/entities/test/Tunnel.test.ts")(
        "An event fails if no client connects for two minutes, and its retry waits as long"
      )
    ),
    row(
      "a client that goes, a runner or an edge that is killed: sent again",
      tests("test/cluster/tunnel.test.ts")("loses no event while runners and the edge that holds it are killed")
    ),
    row(
      "a reader that does not keep up is dropped",
      stream("who does not read is dropped, and costs the others nothing")
    )
  ],
  limits: [
    row("50 deliveries at once", tunnel("is one of fifty that a client holds")),
    row("few streams of one source, and of one address", stream("is one of few of a source, and of an address"))
  ]
}
