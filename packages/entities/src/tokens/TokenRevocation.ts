import { Effect } from "effect"
import { allowInsecureRequests, customFetch, revocationRequest } from "oauth4webapi"
import type { Egress } from "@tidegate/egress/Egress"
import type { Client } from "@tidegate/outbound-auth/types/Grant"
import { clientAuthOf } from "./TokenEndpoint.ts"

const patienceMs = 4_000
const largestAnswer = 4_096

/**
 * Revokes a token at the provider (RFC 7009); returns whether the provider says that it has. Most providers revoke with a refresh
 * token all tokens of its consent.
 */
export const revokeToken = (
  egress: Pick<Egress["Service"], "deliver">,
  endpoint: string,
  client: Client,
  token: string
): Effect.Effect<boolean> =>
  Effect.promise((signal) =>
    revocationRequest(
      { issuer: endpoint, revocation_endpoint: endpoint },
      { client_id: client.id },
      clientAuthOf(client),
      token,
      {
        [allowInsecureRequests]: true,
        [customFetch]: async (url, { body, headers }) => {
          const { errorCode, status } = await egress.deliver({
            method: "POST",
            url,
            headers: [...Object.entries(headers).flat(), "user-agent", "event-gateway/1"],
            body: String(body),
            timeoutMs: patienceMs,
            captureBytes: largestAnswer,
            signal
          })
          return errorCode === null && status === 200 ? new Response(null, { status }) : Response.error()
        }
      }
    ).then(
      (response) => response.status === 200,
      () => false
    )
  )
