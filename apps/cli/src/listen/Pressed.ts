import type { Client } from "@tidegate/client/source"
import { failureOf } from "../Failure.ts"
import { plain } from "../Output.ts"
import { openInBrowser } from "./Browser.ts"
import { linkTo } from "./Lines.ts"

/** What the keys of `listen` do. */

export const hint = "keys: r retries the last event, o opens it in your browser, q quits"

interface Needs {
  readonly client: Client
  readonly baseUrl: string
  /** The id of the last event that was delivered; null: none was. */
  readonly last: () => string | null
  readonly show: (words: string) => void
  readonly signal: AbortSignal
}

/** One call at a time: a key that is held down must not retry an event a hundred times. */
export const keyHandler = ({ baseUrl, client, last, show, signal }: Needs): ((key: string) => void) => {
  const retry = async (id: string): Promise<void> => {
    const { replay_event_id } = await client.post("/events/{id}/retry", { params: { path: { id } }, signal })
    show(`${id} is delivered again, as ${replay_event_id}`)
  }
  const open = async (id: string): Promise<void> => {
    const link = linkTo(baseUrl, id)
    show((await openInBrowser(link)) ? `${link} opens in your browser` : `no browser was found: open ${link}`)
  }
  const actions: Readonly<Record<string, (id: string) => Promise<void>>> = { r: retry, o: open }
  let isBusy = false
  return (key) => {
    // As Ctrl-C does it.
    if (key === "q") return void process.kill(process.pid, "SIGINT")
    const action = actions[key]
    if (action === undefined || isBusy) return
    const id = last()
    if (id === null) return show("no event has arrived yet")
    isBusy = true
    void action(id)
      .catch((error: unknown) => {
        if (!signal.aborted) show(plain(failureOf(error).message))
      })
      .finally(() => {
        isBusy = false
      })
  }
}
