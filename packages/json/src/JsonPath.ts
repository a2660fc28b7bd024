import { isUpTo } from "@tidegate/model/Characters"

/**
 * Paths into a JSON document, as in `$ref` and in the fields of the deduplicate rule:
 * `a.b`, `a[0].b`, `a["odd key"]`, `a[*].id` (every element), `a[$index].y` (the element that is being tested), and the same
 * after a leading `$.`. A path only names fields: there are no wildcards for keys, no recursion and no expressions.
 */
export type PathSegment =
  | { readonly kind: "key"; readonly key: string }
  | { readonly kind: "index"; readonly index: number }
  | { readonly kind: "each" }
  | { readonly kind: "element" }

/** Maximum length of a path, in characters. */
export const maxPathLength = 256

const name = /[^.[\]]+/y
const bracket = /\[(?:(\d{1,9})|(\*)|(\$index)|"([^"\]]+)"|'([^'\]]+)')\]/y

/** The segments of `text`, at least one; null if it is not a path. */
export const parsePath = (text: string): ReadonlyArray<PathSegment> | null => {
  if (!isUpTo(text, maxPathLength)) return null
  const segments: Array<PathSegment> = []
  let at = text.startsWith("$.") ? 2 : text.startsWith("$[") ? 1 : 0
  let dotted = true
  while (at < text.length) {
    if (text[at] === "[") {
      bracket.lastIndex = at
      const found = bracket.exec(text)
      if (found === null) return null
      const [whole, index, each, element, double, single] = found
      if (index !== undefined) segments.push({ kind: "index", index: Number(index) })
      else if (each !== undefined) segments.push({ kind: "each" })
      else if (element !== undefined) segments.push({ kind: "element" })
      else segments.push({ kind: "key", key: double ?? single ?? "" })
      at += whole.length
    } else {
      if (!dotted) {
        if (text[at] !== ".") return null
        at++
      }
      name.lastIndex = at
      const found = name.exec(text)
      if (found === null) return null
      segments.push({ kind: "key", key: found[0] })
      at += found[0].length
    }
    dotted = false
  }
  return segments.length === 0 ? null : segments
}

const position = /^(?:0|[1-9]\d{0,8})$/

/** The array index that a dotted segment names, such as the `0` of `items.0.sku`; or -1. */
export const positionOf = (key: string): number => (position.test(key) ? Number(key) : -1)
