import { Result } from "effect"
import { fail, type GatewayError } from "@tidegate/model/GatewayError"
import type { SourceChange, SourceFields } from "@tidegate/resources/Source"

/**
 * Makes an announced secret the source's, once: a source that has one keeps it, because whoever can reach the source
 * could otherwise announce another.
 */
export const rememberSecret =
  (secret: string) =>
  (stored: SourceFields): Result.Result<SourceChange, GatewayError> => {
    const known = stored.auth["webhook_secret_key"]
    if (known === secret) return Result.succeed({ ...stored, auth: "unchanged" })
    return known === undefined
      ? Result.succeed({ ...stored, auth: Object.assign({}, stored.auth, { webhook_secret_key: secret }) })
      : Result.fail(fail("SOURCE_AUTH_FAILED", "the source has another secret already"))
  }
