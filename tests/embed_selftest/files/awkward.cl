// text that a less careful way of embedding would break
// )" )R" """ )delimiter" ;; [[ ]] ][ { } @VAR@ ${VAR} $ENV{HOME} \ \\ \n \x41 %s %% # \"
#define LONG 1
école 漢字 tab cr lf ? ? / ? ? = a;
b;
;
c no newline at the end \
🎓 and no newline at the end \