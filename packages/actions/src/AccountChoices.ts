import type { Choice } from "@tidegate/model/ActionCatalog"
import type { Json } from "@tidegate/model/Rule"
import { pathOf } from "./AccountRequest.ts"

/** Choices that a provider lists for the owner of an account, page by page. */

export interface AccountChoices {
  /** The path of a page, below the base URL of the account's API. Null: the first page. A caller may have made up the name of the page. */
  readonly path: (page: string | null) => string
  readonly read: (answer: Json) => ReadonlyArray<Choice>
  /** The name of the next page. Null: this is the last one. `link`: the header of the answer. */
  readonly next: (answer: Json, link: string, page: string | null) => string | null
}

/** The longest name of a page, in characters. No provider has one that is nearly as long. */
const longestPage = 1_000

/** A list whose answer has the name of the next page in a member. */
const tokenOf =
  (member: string): AccountChoices["next"] =>
  (answer) => {
    const token = membersOf(answer)[member]
    return typeof token === "string" && token !== "" && token.length <= longestPage ? token : null
  }

/** A list of numbered pages, whose answer says in a header whether there is another one (RFC 8288). */
const numbered: AccountChoices["next"] = (_, link, page) =>
  /;\s*rel="?next\b/.test(link) ? String(numberOf(page, 1) + 1) : null

const numberOf = (page: string | null, first: number): number =>
  page !== null && /^\d{1,6}$/.test(page) ? Number(page) : first

/** A list whose answer has the URL of the next page. Only the number in it is used, so that no answer leads a call elsewhere. */
const skipOf: AccountChoices["next"] = (answer) => {
  const url = membersOf(answer)["@odata.nextLink"]
  return typeof url === "string" ? (URL.parse(url)?.searchParams.get("$skip")?.slice(0, longestPage) ?? null) : null
}

const membersOf = (value: Json | undefined): { readonly [name: string]: unknown } =>
  typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as { readonly [name: string]: unknown })
    : {}

/** The list in a member of the answer; null: the answer is the list. */
const listed =
  (list: string | null, id: string, name: string, description: string): AccountChoices["read"] =>
  (answer) => {
    const entries = list === null ? answer : membersOf(answer)[list]
    return (Array.isArray(entries) ? entries : []).flatMap((entry) => {
      const { [description]: about, [id]: key, [name]: shown } = membersOf(entry)
      if (typeof key !== "string") return []
      return [
        {
          id: key,
          name: typeof shown === "string" ? shown : key,
          description: typeof about === "string" ? about : null
        }
      ]
    })
  }

/** By provider and resource. */
export const accountChoices: Readonly<Record<string, Readonly<Record<string, AccountChoices>>>> = {
  git_host: {
    repositories: {
      path: (page) =>
        pathOf(["user", "repos"], { per_page: 100, limit: 100, sort: "updated", page: numberOf(page, 1) }),
      read: listed(null, "full_name", "full_name", "description"),
      next: numbered
    }
  },
  watch: {
    calendars: {
      path: (page) =>
        pathOf(["calendar", "v3", "users", "me", "calendarList"], {
          maxResults: 250,
          ...(page === null ? {} : { pageToken: page })
        }),
      read: listed("items", "id", "summary", "description"),
      next: tokenOf("nextPageToken")
    }
  },
  graph: {
    mail_folders: {
      path: (page) => pathOf(["v1.0", "me", "mailFolders"], { $top: 100, $skip: numberOf(page, 0) }),
      read: listed("value", "id", "displayName", "parentFolderId"),
      next: skipOf
    }
  }
}
