import { type TestOptions, type TestService, testService } from '../../src/testing/index.ts'
import type { Who } from './access.ts'

/** How many actors each account has; actors are numbered in this order. */
const actorsOfAccounts = [2, 2, 1]
export const actorCount = 5

/** A service with the actors of all worlds; `call` acts as one of them, or anonymously. */
export type Stage = {
  test: TestService
  actors: { id: string; account_id: string; cookie: string }[]
  actorIds: string[]
  call<T>(who: Who, method: string, params: object): Promise<T>
  close(): Promise<void>
}

export async function stageWith(options: TestOptions): Promise<Stage> {
  const test = await testService({
    // Few, because each connection plans every statement for itself, which costs more than all the rows of a world.
    database_pool_max: 2,
    ...options,
  })
  const actors: Stage['actors'] = []
  for (const count of actorsOfAccounts) {
    const { id: account_id, actor_id, cookie } = await test.account()
    actors.push({ id: actor_id, account_id, cookie })
    for (let more = 1; more < count; more++)
      actors.push({ id: await test.actor(account_id, `actor ${more}`), account_id, cookie })
  }
  const call = async <T>(who: Who, method: string, params: object): Promise<T> => {
    if (who === null) return (await test.service.call(method, params)) as T
    const { id, cookie } = actors[who] as (typeof actors)[number]
    return (await test.service.call(method, { ...params, acting: id }, { headers: { cookie } })) as T
  }
  return { test, actors, actorIds: actors.map(({ id }) => id), call, close: () => test.close() }
}
