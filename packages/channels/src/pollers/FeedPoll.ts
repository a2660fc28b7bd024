import { inSlices } from "@tidegate/runtime/EventLoopBudget"
import type { Resumable } from "@tidegate/runtime/Resumable"
import { Effect } from "effect"
import { answered, invalid, maxPageBytes } from "../adapters/Answers.ts"
import { feedHeaders } from "../adapters/WebSub.ts"
import { entryId, entryItem, type FeedDocument, parsingFeed } from "../FeedDocument.ts"
import { textOf } from "../Foreign.ts"
import { unchangedSince, validatorsOf } from "./Conditional.ts"
import { type Listed, listPoller } from "./Listing.ts"

/** Polls a feed: RSS, Atom or JSON Feed. */
export const feedPoll = listPoller("feed_poll", false, (context, state) =>
  Effect.gen(function* () {
    const url = textOf(context.inputs, "url") ?? ""
    const what = "reading the feed"
    const answer = yield* answered(
      context,
      {
        method: "GET",
        url,
        headers: { ...feedHeaders, ...unchangedSince(state, url) },
        authorized: false,
        maxAnswerBytes: maxPageBytes
      },
      what,
      [304]
    )
    if (answer.status === 304) return "unchanged"
    if (answer.truncated) return yield* invalid(`${what}: it has more than ${maxPageBytes} bytes`, answer.status)
    const feed = yield* inSlices(parsingFeed(answer.body, answer.headers["content-type"] ?? null))
    if (feed === null) return yield* invalid(`${what}: the answer is no RSS, Atom or JSON feed`, answer.status)
    return { entries: yield* inSlices(listing(feed)), state: validatorsOf(answer, url) }
  })
)

/** In steps: an entry without an id is written to find out what identifies it. */
function* listing(feed: FeedDocument): Resumable<ReadonlyArray<Listed>> {
  const entries: Array<Listed> = []
  for (const entry of feed.entries) {
    entries.push({ id: entryId(entry), item: () => entryItem(feed, entry) })
    yield
  }
  return entries
}
