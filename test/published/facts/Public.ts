import { missing, of, row, type Section, tests } from "./Facts.ts"

const shares_ = tests("test/contract/Shares.test.ts")
const stored = tests("packages/storage/test/Shares.test.ts")
const redaction = tests("packages/signatures/test/redaction/Redaction.test.ts")
const ingress = tests("test/contract/Ingress.test.ts")

const opened = shares_("shows the request without its secrets to whoever has the link")
const lasting = shares_("lasts as long as it is told, within bounds")

export const shares: Section = {
  title: "Request shares",
  endpoints: [
    row("POST /requests/{id}/share; GET /shares/request/{token}", opened),
    row("DELETE /requests/{id}/share/{share}", shares_("ends when it is revoked"))
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
        stored("shows what was redacted, counts its readers, and keeps its token to itself")
      ),
      of("revoked_at", stored("ends when it is revoked, and forgets what it showed")),
      of("expires_at", lasting)
    ],
    SharedRequest: [
      of("body body_truncated", shares_("has no body where none is asked for, and none that nobody can look into"))
    ],
    PublicShare: [of("*", opened)]
  },
  states: [
    row("expired: 410", stored("ends at its time, says so for a while, and is gone")),
    row("revoked: 410", shares_("ends when it is revoked")),
    row("malformed or unknown token: 404", shares_("that there is not is 404, well-formed or not")),
    row("secrets are redacted before the snapshot is stored", opened),
    row("common secrets, in every kind of body", redaction("is not shown: %s"))
  ],
  limits: [row("TTL 7 days by default; TTL 30 days at most", lasting)]
}

export const bins: Section = {
  title: "Public request bins",
  endpoints: [
    row(
      "POST /public-bins; GET /public-bins/{id}; POST /public-bins/{id}/claim; GET /bins/{id}/stream",
      missing("not built yet: 404, and the message says so")
    )
  ],
  fields: {},
  states: [
    row(
      "one hour after its creation, unless claimed: 410; claim: it moves to the caller's team as a source; a plain request to the stream: 426",
      missing("not built yet")
    )
  ],
  limits: [row("lifetime one hour unless claimed; creation is rate limited", missing("not built yet"))]
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
