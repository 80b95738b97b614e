import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { createClient } from '../../../src/client/client.ts'
import { lena, type World } from '../world.ts'
import { outcomeOf } from './cells.ts'

export const guessBudget = 5

/** Lists, anonymous reads, logins, wrong passwords, and backups; I10. */
export function visitorLoad(world: World, directory: string) {
  const { fleet, adaToken: token, violate } = world
  const count = { logins: 0, guesses: 0, backups: 0 }
  const quietly = (act: () => Promise<unknown>) => () =>
    act().catch((error) => {
      outcomeOf(error)
    })
  const [reader, anonymous] = [world.client({ token }), world.client()]

  world.loop(3, () => reader.try.cell_list({ limit: 20 }))
  world.loop(4, () => anonymous.try.cell_list({ visibility: 'public', limit: 5 }))
  world.loop(
    0.4,
    quietly(async () => {
      await world.client({ jar: true }).account.login(lena)
      count.logins += 1
    }),
  )
  const guesser = createClient({
    url: fleet.base,
    fetch: fleet.fetch({
      expects: [401, 429],
      seen: (status) => {
        if (status === 401) count.guesses += 1
      },
    }),
  })
  world.loop(
    0.3,
    quietly(() => guesser.account.login({ username: 'mallory', password: 'not the right one' })),
  )
  world.loop(0.05, async () => {
    const began = performance.now()
    const to = join(directory, `backup-${count.backups}`)
    const { code, stderr } = await fleet.run('backup', to)
    await rm(to, { force: true, recursive: true })
    if (code === 0) count.backups += 1
    else if (!world.isOver && world.isCalm(began, performance.now()))
      violate('I9', `a backup failed: ${stderr}`)
  })
  return {
    check: async (): Promise<void> => {
      const most = guessBudget * (1 + world.engine.crashes)
      if (count.guesses > most)
        violate('I10', `${count.guesses} guesses at a password were let through, not ${most}`)
    },
    summary: () => count,
  }
}
