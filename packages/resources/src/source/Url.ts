import { Result } from "effect"
import { isId, prefixes } from "@tidegate/model/Ids"
import { type Ingress, isSlug, sourceUrl } from "@tidegate/model/Ingress"
import { fieldError, type FieldErrors } from "../Input.ts"

/**
 * The slug that a written `url` means. Null: none; so for null, and for the URL with the source's id. `id` is the source's; null:
 * it has none yet. Any other URL is refused, because no request would arrive there.
 */
export const slugOf = (
  written: string | null,
  ingress: Pick<Ingress["Service"], "baseUrl">,
  id: string | null
): Result.Result<string | null, FieldErrors> => {
  if (written === null) return Result.succeed(null)
  const href = URL.parse(written)?.href
  const below = URL.parse(sourceUrl(ingress, ""))?.href ?? ""
  if (href?.startsWith(below) !== true) {
    return fieldError("url", `must be on the ingress host, below ${ingress.baseUrl}`)
  }
  const name = href.slice(below.length)
  if (name === id) return Result.succeed(null)
  if (isSlug(name)) return Result.succeed(name)
  return fieldError(
    "url",
    isId(prefixes.source, name)
      ? "is the URL of another source: leave it out"
      : `must be ${sourceUrl(ingress, "")} and 3 to 63 lower-case letters, digits and hyphens`
  )
}
