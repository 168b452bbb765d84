import { Button, Code } from '@mantine/core';
import { IconCode } from '@tabler/icons-react';
import { useState } from 'react';
import { Dialog } from '../../../components/dialog.tsx';
import { CodeInLanguages } from './code-in-languages.tsx';
import { type CodeRequest, codeFor, shortened } from './code-snippets.ts';

/**
 * A button that shows the form's request as a program, for copying.
 * @param request built on click
 */
export function RequestCode({ request, disabled }: { request: () => CodeRequest; disabled?: boolean }) {
  const [shown, setShown] = useState<CodeRequest>();
  return (
    <>
      <Button
        variant="default"
        leftSection={<IconCode size={18} aria-hidden />}
        disabled={disabled ?? false}
        onClick={() => setShown(request())}
      >
        Copy as code
      </Button>
      {shown !== undefined && (
        <Dialog onClose={() => setShown(undefined)} title="This request as code" size="xl">
          <CodeInLanguages
            what="The request"
            hint={
              <>
                It reads the key from the environment: put one of yours into <Code>SLUICE_API_KEY</Code>. Long pictures
                are shortened here, not in the copy.
              </>
            }
            code={(language, baseUrl) => codeFor(language, baseUrl, shown)}
            shown={shortened}
          />
        </Dialog>
      )}
    </>
  );
}
