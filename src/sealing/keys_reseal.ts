import { operation } from '../core/operation.ts'
import { countUnderOldKeys, reseal } from './reseal.ts'

export const resealSecrets = operation({
  doc: 'Seal anew with the first of CELLKEEP_SECRET_KEYS what older keys have sealed, as the server does in its cleanup.',
  handler: async (_input, { app }) => {
    const resealed = await reseal(app)
    return { resealed, left: await countUnderOldKeys(app) }
  },
  command: {
    name: 'keys reseal',
    phrase: ({ resealed, left }) =>
      left === 0
        ? `Sealed ${resealed} anew. Nothing needs the older keys any more.`
        : `Sealed ${resealed} anew; ${left} are left that no key opens.`,
  },
})
