import { Context } from "effect"

/** What will be removed: an operation, or a member of a component of the document. */
export interface Deprecated {
  readonly what: { readonly operation: string } | { readonly component: string; readonly member: string }
  /** The day since when it is deprecated (`2027-01-31`). */
  readonly since: string
  /** The day from which it may be gone. */
  readonly sunset: string
  /** What to use instead. */
  readonly instead: string
  /** The page that says more. */
  readonly link: string
}

/**
 * All that is deprecated. A line here marks it in the document, in the reference and in generated clients, gives the answers of an
 * operation their headers, and puts it into the list of `docs/versions.md`.
 */
export const deprecated: ReadonlyArray<Deprecated> = []

/** What this gateway's answers say. A test may have lines of its own. */
export const Deprecations = Context.Reference<ReadonlyArray<Deprecated>>("@tidegate/api/Deprecations", {
  defaultValue: () => deprecated
})

const secondOf = (day: string): number => Date.parse(`${day}T00:00:00Z`) / 1_000

/** The headers of an answer, by operation: RFC 9745, RFC 8594 and the link of the former. */
export const deprecationHeaders = (
  rows: ReadonlyArray<Deprecated>
): ReadonlyMap<string, Readonly<Record<string, string>>> =>
  new Map(
    rows.flatMap(({ link, since, sunset, what }) =>
      "operation" in what
        ? [
            [
              what.operation,
              {
                deprecation: `@${secondOf(since)}`,
                sunset: new Date(secondOf(sunset) * 1_000).toUTCString(),
                link: `<${link}>; rel="deprecation"; type="text/html"`
              }
            ] as const
          ]
        : []
    )
  )

interface Markable {
  readonly deprecated?: boolean
  readonly description?: string
}

interface Markables {
  readonly [name: string]: Markable
}

interface Marked {
  readonly paths: { readonly [path: string]: Markables }
  readonly components: { readonly schemas: { readonly [name: string]: Markable & { readonly properties?: Markables } } }
}

const marked = (one: Markable, { instead, link, since, sunset }: Deprecated): Markable => ({
  ...one,
  deprecated: true,
  description: [one.description, `Deprecated since ${since}, may be gone from ${sunset}: ${instead} (${link})`]
    .filter((text) => text !== undefined)
    .join(". ")
    .replace(".. ", ". ")
})

/** The document with its marks. A line about something that does not exist is a fault of the line. */
export const markDeprecated = <Document extends object>(
  document: Document,
  rows: ReadonlyArray<Deprecated> = deprecated
): Document => {
  const changed = structuredClone(document) as Document & Marked
  for (const row of rows) {
    const { what } = row
    const places: ReadonlyArray<readonly [Record<string, Markable>, string]> =
      "operation" in what
        ? Object.values(changed.paths).flatMap((path) =>
            Object.entries(path).flatMap(([method, one]) =>
              "operationId" in one && one.operationId === what.operation ? [[path, method] as const] : []
            )
          )
        : Object.entries(changed.components.schemas[what.component]?.properties ?? {}).flatMap(([name]) =>
            name === what.member ? [[changed.components.schemas[what.component]!.properties!, name] as const] : []
          )
    if (places.length !== 1) throw new Error(`${JSON.stringify(what)} is deprecated, but is not in the document`)
    for (const [holder, name] of places) holder[name] = marked(holder[name]!, row)
  }
  return changed
}
