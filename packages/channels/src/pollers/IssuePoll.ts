import { Effect } from "effect"
import type { Context, Item, ProviderError, Target } from "../Adapter.ts"
import { getPage, type Page } from "../adapters/Answers.ts"
import { listOf, memberOf, textOf, timeOf } from "../Foreign.ts"
import { writing } from "../Items.ts"
import { withQuery } from "../Query.ts"
import { type Step, walkPoller } from "./Walk.ts"

/**
 * Polls the issues of a repository that were updated since a time. GitHub sorts them by that time, other servers need not. So the cursor
 * moves on page by page only while the order is right, and otherwise when the last page is read. Issues of the cursor's own second come
 * again, so the cursor contains their ids.
 */
export interface Issues {
  readonly targets: (inputs: Context["inputs"]) => ReadonlyArray<Target>
  readonly url: (context: Context) => string
  /** Null: it is no issue, for example a pull request. */
  readonly item: (context: Context, issue: unknown) => { readonly id: string; readonly item: () => Item } | null
}

const maxEdge = 500

/** Whether an answer names a next page in its Link header. */
export const hasNext = ({ headers }: Page): boolean => /;\s*rel="?next\b/.test(headers["link"] ?? "")

/** Unix ms of the provider's own clock. */
const clockOf = ({ headers }: Page, now: number): number => timeOf(headers["date"] ?? null) ?? now

const seconds = (at: number): string => new Date(at).toISOString().replace(/\.\d+Z$/, "Z")

export const issuePoller = ({ item, targets, url }: Issues) => {
  const read = (context: Context, query: Readonly<Record<string, string>>): Effect.Effect<Page, ProviderError> => {
    const all = { state: "all", type: "issues", sort: "updated", direction: "asc", ...query }
    return getPage(context, withQuery(url(context), all), "reading the issues")
  }
  return walkPoller({
    key: "repo_webhook",
    targets,
    start: (context) =>
      Effect.map(read(context, { direction: "desc", per_page: "100", limit: "100" }), (page) => {
        const since = seconds(clockOf(page, context.now))
        const edge = listOf(page.value).flatMap((issue) => {
          const at = timeOf(textOf(issue, "updated_at"))
          return at === null || seconds(at) !== since ? [] : (item(context, issue)?.id ?? [])
        })
        return { items: [], state: { since, page: 1, newest: null, edge }, more: false }
      }),
    next: (context, _, state) =>
      Effect.gen(function* () {
        const since = textOf(state, "since") ?? ""
        const number = Number(memberOf(state, "page") ?? 1)
        const edge = new Set(listOf(state, "edge"))
        const page = yield* read(context, { since, per_page: "100", limit: "100", page: String(number) })
        const issues = listOf(page.value)
        const times = issues.map((issue) => timeOf(textOf(issue, "updated_at")) ?? 0)
        const before = timeOf(textOf(state, "newest")) ?? timeOf(since) ?? 0
        const newest = times.reduce((latest, at) => Math.max(latest, at), before)
        const found = issues.flatMap((issue, index) => {
          const one = item(context, issue)
          return one === null ? [] : [{ ...one, at: times[index]! }]
        })
        const fresh = found.filter(({ id }) => !edge.has(id)).toSorted((a, b) => a.at - b.at)
        const items = yield* writing(fresh.map((one) => one.item))
        /** The cursor moves to this time. */
        const to = (at: number) => ({
          since: seconds(at),
          page: 1,
          newest: null,
          edge: [
            ...(seconds(at) === since ? edge : []),
            ...found.filter((one) => seconds(one.at) === seconds(at)).map(({ id }) => id)
          ]
            .filter((id): id is string => typeof id === "string")
            .filter((id, index, all) => all.indexOf(id) === index)
            .slice(0, maxEdge)
        })
        if (!hasNext(page)) return { items, state: to(newest), more: false } satisfies Step
        const isSorted = times.every((at, index) => index === 0 || at >= times[index - 1]!)
        const last = times.at(-1) ?? 0
        if (isSorted && number === 1 && last > (timeOf(since) ?? 0)) return { items, state: to(last), more: true }
        return {
          items,
          state: { since, page: number + 1, newest: seconds(newest), edge: [...edge] as ReadonlyArray<string> },
          more: true
        }
      })
  })
}
