import { Context } from "effect"

/**
 * The sources whose channels this process works on. They stay due in the database, so that another process finds them after a crash,
 * and nothing is written when a step begins. The poller skips them: otherwise it would find them instead of others.
 */
export const ChannelsUnderWay = Context.Reference<Set<string>>("@tidegate/entities/Channel/ChannelsUnderWay", {
  defaultValue: () => new Set()
})
