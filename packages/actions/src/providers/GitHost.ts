import { needed, setting, text } from "@tidegate/connectors/Settings"
import { Schema } from "effect"
import { accountRequest, pathOf } from "../AccountRequest.ts"
import { account } from "../AuthModes.ts"
import { calling, type Provider } from "../Provider.ts"

const key = "git_host"

const repository = needed(
  text.check(Schema.isPattern(/^[^\s/?#]{1,100}\/[^\s/?#]{1,100}$/u, { message: "must be owner/name" })),
  "the repository, as owner/name"
)

const whole = "must be a positive whole number"
const body = (description: string) => needed(text.annotate({ description }), "a text, which may be Markdown")

const issuesOf = (of: string): ReadonlyArray<string> => ["repos", ...of.split("/"), "issues"]

const output = {
  type: "object",
  properties: { data: { description: "What the provider answers" } },
  required: ["data"]
} as const
const sampled = { data: { id: 1, html_url: "https://github.com/acme/shop/issues/1" } } as const

export const gitHost: Provider = {
  key,
  name: "GitHub and Gitea",
  description: "Writes issues and comments with a provider account.",
  icon_key: "git-branch",
  manifest_version: "1.0.0",
  auth: [account],
  actions: [
    calling({
      key: "create_issue",
      name: "Create an issue",
      description: "Opens an issue in a repository.",
      category: "code",
      version: "1.0.0",
      inputs: {
        repository,
        title: needed(text, "the title"),
        body: setting(text.annotate({ description: "Markdown" }), null)
      },
      output,
      primary_output: "data",
      sample: { inputs: { repository: "acme/shop", title: "Order 1 failed" }, output: sampled },
      rate_limit: null,
      call: ({ body, repository, title }, credentials) =>
        accountRequest(
          key,
          credentials,
          { method: "POST", path: pathOf(issuesOf(repository)), body: { title, ...(body === null ? {} : { body }) } },
          (data) => ({ data })
        )
    }),
    calling({
      key: "create_comment",
      name: "Comment on an issue",
      description: "Adds a comment to an issue or a pull request.",
      category: "code",
      version: "1.0.0",
      inputs: {
        repository,
        number: needed(
          Schema.Number.annotate({ message: whole }).check(
            Schema.isInt({ message: whole }).abort(),
            Schema.isGreaterThanOrEqualTo(1, { message: whole })
          ),
          "the number of the issue",
          whole
        ),
        body: body("The comment")
      },
      output,
      primary_output: "data",
      sample: { inputs: { repository: "acme/shop", number: 1, body: "Paid." }, output: sampled },
      rate_limit: null,
      call: ({ body, number, repository }, credentials) =>
        accountRequest(
          key,
          credentials,
          { method: "POST", path: pathOf([...issuesOf(repository), String(number), "comments"]), body: { body } },
          (data) => ({ data })
        )
    })
  ]
}
