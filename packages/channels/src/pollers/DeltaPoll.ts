import { Effect, type Schema } from "effect"
import type { Context, Item, Poller, ProviderError, Target } from "../Adapter.ts"
import { getPage, invalid, type Page } from "../adapters/Answers.ts"
import { listOf, memberOf, textOf } from "../Foreign.ts"
import { maxItems, writing } from "../Items.ts"
import { type Step, walkPoller } from "./Walk.ts"

/**
 * Polls delta queries of Microsoft Graph (https://learn.microsoft.com/graph/delta-query-overview). Each page has a link to the next one;
 * the last page has the link by which the next poll begins. When Graph does not know the link any more (410), a bounded list replaces it.
 */
export interface Delta {
  readonly key: string
  readonly targets: (inputs: Schema.JsonObject) => ReadonlyArray<Target>
  /** The path and query of the first page of changes from now on. What its pages contain is not new. */
  readonly begin: (context: Context, target: string) => string
  /** The path and query of the list of what there is. */
  readonly list: (context: Context, target: string) => string
  readonly headers: Readonly<Record<string, string>>
  /** Null: the thing is no item, for example because it was removed. */
  readonly item: (target: string, value: unknown) => (() => Item) | null
}

/** - `left`: how many items may still be emitted. - `after`: where the changes continue after a list. */
interface At {
  readonly link: string
  readonly left?: number
  readonly after?: string
}

const longestLink = 8_192

/** Pages that are read to find out where changes begin, when a link has become unknown. */
const maxPages = 50

const linkOf = (value: unknown, name: string): string | null => {
  const link = textOf(value, name)
  return link === null || link.length > longestLink ? null : link
}

const what = "reading the changes"

export const deltaPoller = ({ begin, headers, item, key, list, targets }: Delta): Poller => {
  /** The content of a page. If a link is not on the provider's origin, the call fails, because it would carry the credentials there. */
  const stepOf = (target: string, { status, value }: Page, { after, left }: At): Effect.Effect<Step, ProviderError> =>
    Effect.gen(function* () {
      const makes = listOf(value, "value").flatMap((one) => item(target, one) ?? [])
      const items = yield* writing(left === undefined ? makes : makes.slice(0, left))
      const [next, end] = [linkOf(value, "@odata.nextLink"), linkOf(value, "@odata.deltaLink")]
      const rest = left === undefined ? {} : { left: left - items.length }
      if (after !== undefined) {
        const isOver = rest.left === 0 || next === null
        return {
          items,
          state: isOver ? { link: after } : { link: next, ...rest, after },
          more: true,
          reset: true as const
        }
      }
      if (next !== null) return { items, state: { link: next, ...rest }, more: true }
      return end === null
        ? yield* invalid(`${what}: the answer has no link`, status)
        : { items, state: { link: end }, more: false }
    })

  /** Reads a page whose items are not new. */
  const skip = (context: Context, target: string, link: string): Effect.Effect<Step, ProviderError> =>
    Effect.flatMap(getPage(context, link, what, [], headers), (page) => stepOf(target, page, { link, left: 0 }))

  const start = (context: Context, target: string): Effect.Effect<Step, ProviderError> =>
    skip(context, target, context.baseUrl + begin(context, target))

  return walkPoller({
    key,
    targets,
    start,
    next: (context, target, state) =>
      Effect.gen(function* () {
        const [link, left, after] = [textOf(state, "link") ?? "", memberOf(state, "left"), textOf(state, "after")]
        const page = yield* getPage(context, link, what, after === null ? [410] : [], headers)
        if (page.status !== 410) {
          return yield* stepOf(target, page, {
            link,
            ...(typeof left === "number" ? { left } : {}),
            ...(after === null ? {} : { after })
          })
        }
        // First finds where the changes begin now, then lists the existing items, so that no change between the two is missed.
        let begun = yield* start(context, target)
        for (let pages = 1; begun.more; pages++) {
          if (pages === maxPages) return yield* invalid(`${what}: there are more than ${maxPages} pages`)
          begun = yield* skip(context, target, textOf(begun.state, "link") ?? "")
        }
        const listed = {
          link: context.baseUrl + list(context, target),
          left: maxItems,
          after: textOf(begun.state, "link") ?? ""
        }
        return { items: [], state: listed, more: true, reset: true as const }
      })
  })
}
