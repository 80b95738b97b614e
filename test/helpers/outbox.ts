import { sql } from '../../src/db/db.ts'
import type { TestService } from '../../src/testing/index.ts'

type OutboxRow = {
  id: string
  purpose: string
  notice: string | null
  state: string
  error: string | null
  attempts: number
  to_address: string | null
  link_sealed: string | null
  pause: number | null
}

/** The outbox, oldest first. */
export const outbox = ({ service }: Pick<TestService, 'service'>): Promise<OutboxRow[]> =>
  service.app.db.rows<OutboxRow>(sql`
    select id, purpose, notice, state, error, attempts, to_address, link_sealed,
      extract(epoch from next_attempt_at - now())::int as pause
    from message_outbox order by created_at, id`)

/** Waits until every message was tried, and none is due or being delivered. */
export async function settled(test: Pick<TestService, 'service'>): Promise<OutboxRow[]> {
  for (;;) {
    const { busy } = await test.service.app.db.one<{ busy: boolean }>(sql`
      select exists (select from message_outbox where state = 'queued'
        and (attempts = 0 or leased_until > now() or next_attempt_at <= now())) as busy`)
    if (!busy) return await outbox(test)
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

/** Makes every message due now, and wakes the worker. */
export async function makeDue({ service }: Pick<TestService, 'service'>): Promise<void> {
  await service.app.db.run(sql`
    update message_outbox set next_attempt_at = now(), leased_until = null where state = 'queued'`)
  service.app.outbox.wake()
}

export const tokenOf = (link: string): string => link.slice(link.indexOf('#ticket=') + 8)
