import { setting } from "@tidegate/connectors/Settings"
import type { Schema } from "effect"
import type { Context } from "../Adapter.ts"
import { graphAdapter } from "../adapters/Graph.ts"
import { memberOf, textOf, timeOf } from "../Foreign.ts"
import { itemId, itemOf } from "../Items.ts"
import { deltaPoller } from "../pollers/DeltaPoll.ts"
import { withQuery } from "../Query.ts"
import type { SourceProvider } from "../SourceProvider.ts"
import { aText, bearer, idIn, ids, line, maybeText, shape, targetsOf, theData, tokenField } from "./Inputs.ts"

const minute = 60_000
const day = 86_400_000

/** If a delta link is lost, a list of messages replaces it. It goes back this far. */
const furthest = 30 * day

/** Folders that are watched at most: the link of each is up to 2 KB long, and together they must fit into the cursor. */
const maxFolders = 25

const folders = (inputs: Schema.JsonObject) => targetsOf("folder", inputs["folder_ids"])

/** Messages that arrived from a time on. The folder's older ones are neither read nor emitted. */
const messagesFrom = ({ now }: Context, target: string, age: number): string => {
  const path = `/v1.0/me/mailFolders/${encodeURIComponent(idIn(target))}/messages/delta`
  return withQuery(path, {
    changeType: "created",
    $filter: `receivedDateTime ge ${new Date(now - age).toISOString()}`,
    $select:
      "id,subject,from,toRecipients,receivedDateTime,bodyPreview,hasAttachments,importance,webLink,conversationId"
  })
}

const driveOf = (inputs: Schema.JsonObject): string => {
  const drive = textOf(inputs, "drive_id")
  return drive === null ? "/me/drive/root" : `/drives/${encodeURIComponent(drive)}/root`
}

const driveTargets = () => [{ key: "root" }]

const mailScope = "Mail.Read"
const filesScope = "Files.Read.All"

export const graph: SourceProvider = {
  key: "graph",
  name: "Microsoft 365",
  description: "New mail and changed files, by subscriptions of Microsoft Graph.",
  icon_key: "mail",
  manifest_version: "1.0.0",
  account: {
    connections: ["oauth2", "api_key"],
    origin: "https://graph.microsoft.com",
    selfHosted: false,
    oauth2: {
      authorizationUrl: "https://login.microsoftonline.com/common/oauth2/v2.0/authorize",
      tokenUrl: "https://login.microsoftonline.com/common/oauth2/v2.0/token",
      revocationUrl: null,
      scopes: ["offline_access", "User.Read", mailScope, filesScope],
      parameters: {}
    },
    fields: [tokenField("An OAuth access token. It is not renewed: connect by OAuth 2 for more than a trial")],
    headers: bearer,
    identity: { path: "/v1.0/me", id: ["id"], name: ["displayName"], email: ["mail"] }
  },
  triggers: [
    {
      key: "message.created",
      name: "Message received",
      description: "A message arrived in a mail folder.",
      category: "mail",
      version: "1.0.0",
      requiredScopes: [mailScope],
      inputs: {
        folder_ids: ids(["inbox"], maxFolders, "The mail folders that are watched: ids, or names like inbox")
      },
      output: shape({
        folder_id: aText("The folder"),
        id: aText("The message"),
        subject: maybeText("Its subject"),
        received_at: maybeText("When it arrived"),
        data: theData("The message as Graph gives it, without its body")
      }),
      primaryOutput: "data",
      sample: {
        inputs: { folder_ids: ["inbox"] },
        output: {
          folder_id: "inbox",
          id: "AAMkAGI=",
          subject: "Order 1",
          received_at: "2026-01-01T00:00:00Z",
          data: { id: "AAMkAGI=", subject: "Order 1", bodyPreview: "Please send" }
        }
      },
      adapter: graphAdapter({
        targets: folders,
        resource: (_, target) => `me/mailFolders('${idIn(target).replaceAll("'", "''")}')/messages`,
        changeType: "created",
        // Graph allows 10,080 minutes; 4,230 is what it always allowed.
        longestLife: 4_230 * minute
      }),
      poller: deltaPoller({
        key: "graph",
        targets: folders,
        // A day of overlap, because the two clocks need not agree.
        begin: (context, target) => messagesFrom(context, target, day),
        list: (context, target) => messagesFrom(context, target, furthest),
        headers: { prefer: "odata.maxpagesize=100" },
        item: (target, message) => {
          const id = textOf(message, "id")
          if (id === null || memberOf(message, "@removed") !== undefined) return null
          const received = textOf(message, "receivedDateTime")
          const body = {
            folder_id: idIn(target),
            id,
            subject: textOf(message, "subject"),
            received_at: received,
            data: message
          }
          return () => itemOf(itemId("message", id), body, timeOf(received))
        }
      })
    },
    {
      key: "drive_item.changed",
      name: "File changed",
      description: "A file or folder of a drive was created, changed or deleted.",
      category: "files",
      version: "1.0.0",
      requiredScopes: [filesScope],
      inputs: {
        drive_id: setting(line(256).annotate({ description: "The drive; left out: the account's own" }), null)
      },
      output: shape({
        id: aText("The file or folder"),
        name: maybeText("Its name"),
        deleted: { type: "boolean" },
        modified_at: maybeText("When it was changed"),
        data: theData("The item as Graph gives it")
      }),
      primaryOutput: "data",
      sample: {
        inputs: {},
        output: {
          id: "01ITEM",
          name: "Plan.docx",
          deleted: false,
          modified_at: "2026-01-01T00:00:00Z",
          data: { id: "01ITEM", name: "Plan.docx", eTag: '"{01ITEM},1"' }
        }
      },
      adapter: graphAdapter({
        targets: driveTargets,
        resource: (inputs) => driveOf(inputs).slice(1),
        changeType: "updated",
        longestLife: 42_300 * minute
      }),
      poller: deltaPoller({
        key: "graph",
        targets: driveTargets,
        begin: ({ inputs }) => `/v1.0${driveOf(inputs)}/delta?token=latest`,
        list: ({ inputs }) => `/v1.0${driveOf(inputs)}/delta?$top=200`,
        headers: {},
        item: (_, file) => {
          const id = textOf(file, "id")
          // The root changes with everything in it.
          if (id === null || memberOf(file, "root") !== undefined) return null
          const modified = textOf(file, "lastModifiedDateTime")
          const deleted = memberOf(file, "deleted") !== undefined
          const version = textOf(file, "eTag") ?? modified ?? ""
          const body = { id, name: textOf(file, "name"), deleted, modified_at: modified, data: file }
          return () => itemOf(itemId("drive_item", id, deleted ? "deleted" : version), body, timeOf(modified))
        }
      })
    }
  ]
}
