import type { Choice } from "@tidegate/model/ActionCatalog"
import type { Json } from "@tidegate/model/Rule"
import { pathOf } from "./AccountRequest.ts"

/** Choices that a provider lists for the owner of an account: one page of each list. */

export interface AccountChoices {
  /** Behind the base URL of the account's API. */
  readonly path: string
  readonly read: (answer: Json) => ReadonlyArray<Choice>
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
      path: pathOf(["user", "repos"], { per_page: 100, sort: "updated" }),
      read: listed(null, "full_name", "full_name", "description")
    }
  },
  watch: {
    calendars: {
      path: pathOf(["calendar", "v3", "users", "me", "calendarList"], { maxResults: 250 }),
      read: listed("items", "id", "summary", "description")
    }
  },
  graph: {
    mail_folders: {
      path: pathOf(["v1.0", "me", "mailFolders"], { $top: 100 }),
      read: listed("value", "id", "displayName", "parentFolderId")
    }
  }
}
