import { Button, Code, SegmentedControl, Stack, Text } from '@mantine/core';
import { IconCode } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { settingsQuery } from '../../api/settings.ts';
import { CodeBlock } from '../../components/code-block.tsx';
import { Dialog } from '../../components/dialog.tsx';
import { type CodeLanguage, type CodeRequest, codeFor, codeLanguages, shortened } from './code-snippets.ts';

/** A button that shows the form's request as a program, to be copied. @param request made when it is asked for */
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
          <CodeView request={shown} />
        </Dialog>
      )}
    </>
  );
}

function CodeView({ request }: { request: CodeRequest }) {
  const [language, setLanguage] = useState<CodeLanguage>('curl');
  const settings = useQuery(settingsQuery);
  const code = codeFor(language, settings.data?.base_url ?? location.origin, request);
  return (
    <Stack gap="sm">
      <SegmentedControl
        aria-label="Language"
        data={[...codeLanguages]}
        value={language}
        onChange={(value) => setLanguage(value as CodeLanguage)}
      />
      <Text size="sm" c="dimmed">
        It reads the key from the environment: put one of yours into <Code>SLUICE_API_KEY</Code>. Long pictures are
        shortened here, not in the copy.
      </Text>
      <CodeBlock code={code} shown={shortened(code)} label={`The request in ${language}`} />
    </Stack>
  );
}
