import { Result } from "effect"
import { isId, prefixes } from "@tidegate/model/Ids"
import { type Ingress, isSlug, sourceUrl } from "@tidegate/model/Ingress"
import { fieldError, type FieldErrors } from "../Input.ts"

/**
 * The slug that a written `url` asks for. Null: none; so it is for null, and for the URL that a source has by its id.
 * `id` is the source's, null while it has none. Any other URL is refused, because nothing would arrive there.
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
