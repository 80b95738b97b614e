import { useState } from 'preact/hooks'
import { useSend } from '../api/send.ts'
import { explain } from '../copy/errors.ts'
import { security } from '../copy/security.ts'
import { Button } from '../ui/button.tsx'
import { Confirm } from '../ui/dialog.tsx'
import type { SecurityProps } from './security.tsx'

export function RecoveryCodes({ of, onCodes }: SecurityProps) {
  const [isAsking, ask] = useState(false)
  const create = useSend('account_recovery_codes_create', { spoils: ['account_sign_in_get'] })
  const confirm = async (): Promise<void> => {
    const made = await create.send({})
    if (!made) return
    ask(false)
    onCodes(made.recovery_codes)
  }
  return (
    <section class="section">
      <h2>{security.codes}</h2>
      <p class="soft">{security.codes_about(of.recovery_codes_left)}</p>
      <div>
        <Button onClick={() => ask(true)}>{security.codes_renew}</Button>
      </div>
      {isAsking && (
        <Confirm
          title={security.codes_question}
          verb={security.codes_renew}
          kind="primary"
          onConfirm={() => void confirm()}
          onClose={() => ask(false)}
          isBusy={create.isBusy}
          wait={create.wait}
          fault={create.error && explain(create.error)}
        >
          <p>{security.codes_replaced}</p>
        </Confirm>
      )}
    </section>
  )
}
